package record

import (
	"context"
	"iter"
	"slices"

	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/think"
	"xiaozhi/providers"
)

// vadBatch is how many probabilities make one entry: about a second.
const vadBatch = 32

type tapedVAD struct {
	providers.VAD
	tape *Tape
}

// NewDetector makes a detector whose judgements are recorded.
func (v tapedVAD) NewDetector() (providers.Detector, error) {
	d, err := v.VAD.NewDetector()
	if err != nil {
		return nil, err
	}
	return &tapedDetector{Detector: d, tape: v.tape, n: v.tape.count("vad")}, nil
}

type tapedDetector struct {
	providers.Detector
	tape  *Tape
	n     int
	batch []float32
	reset bool
}

// Probability records what the detector says. A failure is recorded as silence.
func (d *tapedDetector) Probability(frame []int16) (float32, error) {
	p, err := d.Detector.Probability(frame)
	d.batch = append(d.batch, p)
	if len(d.batch) == vadBatch {
		d.flush()
	}
	return p, err
}

// Reset begins a new stretch.
func (d *tapedDetector) Reset() {
	d.flush()
	d.reset = true
	d.Detector.Reset()
}

// Close lets the detector go.
func (d *tapedDetector) Close() error {
	d.flush()
	return d.Detector.Close()
}

func (d *tapedDetector) flush() {
	if len(d.batch) > 0 || d.reset {
		d.tape.add(Entry{VAD: &VAD{N: d.n, P: d.batch, Reset: d.reset}})
	}
	d.batch, d.reset = nil, false
}

// warm lets an engine get ready, if it knows how to: the requests of a recorded
// conversation wait for no more than those of others.
func warm(ctx context.Context, engine any) error {
	if w, ok := engine.(providers.Warmer); ok {
		return w.Warm(ctx)
	}
	return nil
}

type tapedASR struct {
	providers.ASR
	tape *Tape
}

// Warm lets the recogniser get ready; that is not recorded.
func (a tapedASR) Warm(ctx context.Context) error { return warm(ctx, a.ASR) }

// Open opens a stream that is recorded.
func (a tapedASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	s := &tapedStream{ctx: ctx, tape: a.tape, n: a.tape.count("asr")}
	s.add(ASR{Step: Asked, Language: req.Language})
	stream, err := a.ASR.Open(ctx, req)
	if err != nil {
		s.add(ASR{Step: Refused, Fault: faultOf(ctx, err)})
		return nil, err
	}
	s.ASRStream = stream
	return s, nil
}

type tapedStream struct {
	providers.ASRStream
	ctx     context.Context //nolint:containedctx // a stream lives as long as the context of its Open
	tape    *Tape
	n       int
	samples int
}

func (s *tapedStream) add(a ASR) {
	a.N = s.n
	s.tape.add(Entry{ASR: &a})
}

// Write counts the samples, and records that they were refused.
func (s *tapedStream) Write(pcm []int16) error {
	err := s.ASRStream.Write(pcm)
	if err != nil {
		s.add(ASR{Step: Full, Samples: s.samples, Fault: plainFault(err)})
		return err
	}
	s.samples += len(pcm)
	return nil
}

// CloseWrite records that the utterance is complete.
func (s *tapedStream) CloseWrite() error {
	s.add(ASR{Step: Closed, Samples: s.samples})
	return s.ASRStream.CloseWrite()
}

// Transcripts records what was understood.
func (s *tapedStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		follow(s.ctx, s.ASRStream.Transcripts(), yield,
			func(t providers.Transcript) { s.add(ASR{Step: Gave, Transcript: &t}) },
			func(step Step, f *Fault) { s.add(ASR{Step: step, Fault: f}) })
	}
}

type tapedLLM struct {
	providers.LLM
	tape *Tape
}

// Warm lets the model get ready; that is not recorded.
func (l tapedLLM) Warm(ctx context.Context) error { return warm(ctx, l.LLM) }

// Capabilities are those of the model.
func (l tapedLLM) Capabilities() providers.Capabilities { return providers.CapabilitiesOf(l.LLM) }

// Generate records a model call.
func (l tapedLLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		n := l.tape.count("llm")
		add := func(e LLM) { e.N = n; l.tape.add(Entry{LLM: &e}) }
		add(LLM{Step: Asked, Request: requestOf(req)})
		follow(ctx, l.LLM.Generate(ctx, req), yield,
			func(d providers.Delta) { add(LLM{Step: Gave, Delta: &d}) },
			func(step Step, f *Fault) { add(LLM{Step: step, Fault: f}) })
	}
}

// follow ranges over what an engine gives, records it, and passes it on.
func follow[T any](ctx context.Context, from iter.Seq2[T, error], yield func(T, error) bool, gave func(T), over func(Step, *Fault)) {
	end := Panicked
	var fault *Fault
	defer func() { over(end, fault) }()
	for v, err := range from {
		end = Left
		if err != nil {
			end, fault = Failed, faultOf(ctx, err)
			over(end, fault)
			over = func(Step, *Fault) {}
		} else {
			gave(v)
		}
		if !yield(v, err) || err != nil {
			return
		}
		end = Panicked
	}
	end = Done
}

// requestOf returns what is recorded of a model's request.
func requestOf(req providers.LLMRequest) *Request {
	r := &Request{Messages: slices.Clone(req.Messages), NoTools: req.NoTools, Language: req.Language}
	for i := range r.Messages {
		r.Messages[i].Images = nil
	}
	for _, tool := range req.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	return r
}

type tapedFastPath struct {
	think.FastPath
	tape *Tape
}

// Answer records what the fast path knows.
func (f tapedFastPath) Answer(req providers.LLMRequest) (providers.Delta, bool) {
	d, ok := f.FastPath.Answer(req)
	e := &Fast{N: f.tape.count("fast")}
	if ok {
		e.Delta = &d
	}
	f.tape.add(Entry{Fast: e})
	return d, ok
}

type tapedTTS struct {
	providers.TTS
	tape *Tape
}

// Warm lets the voice get ready; that is not recorded.
func (s tapedTTS) Warm(ctx context.Context) error { return warm(ctx, s.TTS) }

// Synthesize records a synthesis.
func (s tapedTTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		n := s.tape.count("tts")
		add := func(e TTS) { e.N = n; s.tape.add(Entry{TTS: &e}) }
		add(TTS{Step: Asked, Request: &req})
		follow(ctx, s.TTS.Synthesize(ctx, req), yield,
			func(p providers.Sound) { add(TTS{Step: Gave, Sound: soundOf(p)}) },
			func(step Step, f *Fault) { add(TTS{Step: step, Fault: f}) })
	}
}

// soundOf copies a piece of sound, which is only lent.
func soundOf(p providers.Sound) *Sound {
	s := &Sound{Sound: p, PCM: slices.Clone(PCM(p.PCM))}
	s.Sound.PCM, s.Packets = nil, nil
	for _, packet := range p.Packets {
		s.Packets = append(s.Packets, slices.Clone(packet))
	}
	return s
}

type tapedMusic struct {
	music.Library
	tape *Tape
}

// Open opens a song that is recorded.
func (m tapedMusic) Open(id string) (music.Song, error) {
	n := m.tape.count("song")
	song, err := m.Library.Open(id)
	e := &Song{N: n, Step: Asked, ID: id, Fault: plainFault(err)}
	if err == nil {
		e.Rate = song.Rate()
	}
	m.tape.add(Entry{Song: e})
	if err != nil {
		return nil, err
	}
	return tapedSong{song, m.tape, n}, nil
}

// Next records which song is next.
func (m tapedMusic) Next(id string) (next, title string, err error) {
	n := m.tape.count("next song")
	next, title, err = m.Library.Next(id)
	m.tape.add(Entry{Song: &Song{N: n, Step: Done, ID: id, Next: next, Title: title, Fault: plainFault(err)}})
	return next, title, err
}

type tapedSong struct {
	music.Song
	tape *Tape
	n    int
}

// Read records the sound.
func (s tapedSong) Read(pcm []int16) (int, error) {
	n, err := s.Song.Read(pcm)
	e := &Song{N: s.n, Step: Gave, PCM: slices.Clone(PCM(pcm[:n]))}
	if err != nil {
		e.Step, e.Fault = Failed, plainFault(err)
	}
	s.tape.add(Entry{Song: e})
	return n, err
}
