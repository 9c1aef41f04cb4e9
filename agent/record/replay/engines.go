package replay

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/record"
	"xiaozhi/providers"
)

// errMore is what an engine says that is asked more often than it was.
var errMore = errors.New("the recording holds no more answers")

type vad struct {
	*player
	frame int
	mu    sync.Mutex
	made  int
}

// FrameSamples is that of the recorded detector.
func (v *vad) FrameSamples() int { return v.frame }

// NewDetector makes the next detector.
func (v *vad) NewDetector() (providers.Detector, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.made++
	d := &detector{stretches: make([][]float32, 1)}
	for _, piece := range v.vad[v.made] {
		if piece.Reset {
			d.stretches = append(d.stretches, nil)
		}
		last := len(d.stretches) - 1
		d.stretches[last] = append(d.stretches[last], piece.P...)
	}
	return d, nil
}

// detector says again what one said, in stretches that a reset ends.
type detector struct{ stretches [][]float32 }

// Probability is the next one of the stretch; after its end nobody speaks.
func (d *detector) Probability([]int16) (p float32, err error) {
	if len(d.stretches) > 0 && len(d.stretches[0]) > 0 {
		p, d.stretches[0] = d.stretches[0][0], d.stretches[0][1:]
	}
	return p, nil
}

// Reset goes on to the next stretch.
func (d *detector) Reset() {
	if len(d.stretches) > 0 {
		d.stretches = d.stretches[1:]
	}
}

// Close does nothing.
func (d *detector) Close() error { return nil }

type asr struct {
	*player
	name  string
	mu    sync.Mutex
	asked int
}

// Name is that of the recorded recogniser.
func (a *asr) Name() string { return a.name }

// Open opens the next stream.
func (a *asr) Open(ctx context.Context, _ providers.ASRRequest) (providers.ASRStream, error) {
	a.mu.Lock()
	a.asked++
	steps := a.asr[a.asked]
	a.mu.Unlock()
	s := &stream{player: a.player, ctx: ctx, steps: steps, opened: a.now(), closed: make(chan struct{})}
	if len(steps) > 1 && steps[1].v.Step == record.Refused {
		return nil, steps[1].v.Fault.Err()
	}
	return s, nil
}

// stream says again what a stream said.
type stream struct {
	*player
	ctx     context.Context //nolint:containedctx // a stream lives as long as the context of its Open
	steps   []step[record.ASR]
	samples int
	closing sync.Once
	closed  chan struct{}

	opened, closedAt timeSince
}

// Write counts the samples, and refuses them where they were refused.
func (s *stream) Write(pcm []int16) error {
	for _, st := range s.steps {
		if st.v.Step == record.Full && s.samples >= st.v.Samples {
			return st.v.Fault.Err()
		}
	}
	s.samples += len(pcm)
	return nil
}

// CloseWrite says that the utterance is complete.
func (s *stream) CloseWrite() error {
	s.closing.Do(func() {
		s.closedAt = s.now()
		close(s.closed)
	})
	return nil
}

// Transcripts gives what was understood, when it was.
func (s *stream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		if len(s.steps) == 0 {
			yield(providers.Transcript{}, errMore)
			return
		}
		now, asked := s.opened, s.steps[0].at
		for _, st := range s.steps[1:] {
			switch st.v.Step {
			case record.Closed:
				select {
				case <-s.closed:
					now, asked = s.closedAt, st.at
				case <-s.ctx.Done():
					yield(providers.Transcript{}, s.ctx.Err())
					return
				}
				continue
			case record.Full:
				continue
			default:
			}
			if err := s.due(s.ctx, now, asked, st.at, st.v.Step, st.v.Fault); err != nil {
				yield(providers.Transcript{}, err)
				return
			}
			if st.v.Step != record.Gave || st.v.Transcript == nil {
				return
			}
			if !yield(*st.v.Transcript, nil) {
				return
			}
		}
	}
}

type llm struct {
	*player
	name  string
	mu    sync.Mutex
	asked int
}

// Name is that of the recorded model.
func (l *llm) Name() string { return l.name }

// Generate gives the next answer.
func (l *llm) Generate(ctx context.Context, _ providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		l.mu.Lock()
		l.asked++
		steps := l.llm[l.asked]
		l.mu.Unlock()
		play(ctx, l.player, steps, yield, func(v record.LLM) (providers.Delta, record.Step, *record.Fault) {
			if v.Delta == nil {
				return providers.Delta{}, v.Step, v.Fault
			}
			return *v.Delta, v.Step, v.Fault
		})
	}
}

type tts struct {
	*player
	name  string
	mu    sync.Mutex
	asked int
}

// Name is that of the recorded voice.
func (s *tts) Name() string { return s.name }

// Synthesize gives the next sound.
func (s *tts) Synthesize(ctx context.Context, _ providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		s.mu.Lock()
		s.asked++
		steps := s.tts[s.asked]
		s.mu.Unlock()
		play(ctx, s.player, steps, yield, func(v record.TTS) (providers.Sound, record.Step, *record.Fault) {
			if v.Sound == nil {
				return providers.Sound{}, v.Step, v.Fault
			}
			sound := v.Sound.Sound
			sound.PCM = append([]int16(nil), v.Sound.PCM...)
			return sound, v.Step, v.Fault
		})
	}
}

// play yields what an engine gave to one question, when it gave it.
func play[V, T any](ctx context.Context, p *player, steps []step[V], yield func(T, error) bool, of func(V) (T, record.Step, *record.Fault)) {
	var none T
	if len(steps) == 0 {
		yield(none, errMore)
		return
	}
	now := p.now()
	for _, st := range steps[1:] {
		v, what, fault := of(st.v)
		if err := p.due(ctx, now, steps[0].at, st.at, what, fault); err != nil {
			yield(none, err)
			return
		}
		if what != record.Gave {
			return
		}
		if !yield(v, nil) {
			return
		}
	}
}

// due waits until a step is due, and returns the error that it is. What had
// ended because it was not wanted any more ends when that is so.
func (p *player) due(ctx context.Context, now, asked, came timeSince, what record.Step, fault *record.Fault) error {
	if what == record.Left || (what == record.Failed && fault != nil && fault.Gone) {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := p.until(ctx, p.after(now, asked, came)); err != nil {
		return err
	}
	switch what {
	case record.Failed:
		return fault.Err()
	case record.Panicked:
		panic("it broke, as it did when it was recorded")
	default:
		return nil
	}
}

type fastPath struct {
	*player
	mu    sync.Mutex
	asked int
}

// Answer says what the fast path said.
func (f *fastPath) Answer(providers.LLMRequest) (providers.Delta, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.asked > len(f.fast) || f.fast[f.asked-1].Delta == nil {
		return providers.Delta{}, false
	}
	return *f.fast[f.asked-1].Delta, true
}

type library struct {
	*player
	mu     sync.Mutex
	opened int
	named  int
}

// Open opens the next song.
func (m *library) Open(string) (music.Song, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	steps := m.songs[m.opened]
	if len(steps) == 0 {
		return nil, errMore
	}
	if f := steps[0].v.Fault; f != nil {
		return nil, f.Err()
	}
	return &song{rate: steps[0].v.Rate, steps: steps[1:]}, nil
}

// Next names the next song.
func (m *library) Next(string) (next, title string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.named++
	s, ok := m.next[m.named]
	if !ok {
		return "", "", errMore
	}
	return s.Next, s.Title, s.Fault.Err()
}

type song struct {
	rate  int
	steps []step[record.Song]
}

// Rate is that of the recorded song.
func (s *song) Rate() int { return s.rate }

// Read gives what was read.
func (s *song) Read(pcm []int16) (int, error) {
	if len(s.steps) == 0 {
		return 0, io.EOF
	}
	v := &s.steps[0].v
	n := copy(pcm, v.PCM)
	if v.PCM = v.PCM[n:]; len(v.PCM) > 0 {
		return n, nil
	}
	s.steps = s.steps[1:]
	if v.Fault != nil && v.Fault.Is == "eof" {
		return n, io.EOF
	}
	return n, v.Fault.Err()
}

// Close does nothing.
func (s *song) Close() error { return nil }
