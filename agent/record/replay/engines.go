package replay

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/record"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// errMore is what an engine says that is asked more often than it was.
var errMore = errors.New("the recording holds no more answers")

// answers hold what one kind of engine said, by the number of its use, and count
// its uses again.
type answers[T any] struct {
	said map[int][]step[T]
	mu   sync.Mutex
	used int
}

func (a *answers[T]) add(n int, at time.Duration, v T) {
	if a.said == nil {
		a.said = map[int][]step[T]{}
	}
	a.said[n] = append(a.said[n], step[T]{at, v})
}

// next returns the script of the next question.
func (a *answers[T]) next() []step[T] {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used++
	return a.said[a.used]
}

type vad struct {
	*player
	frame int
}

// FrameSamples is that of the recorded detector.
func (v *vad) FrameSamples() int { return v.frame }

// NewDetector makes the next detector.
func (v *vad) NewDetector() (providers.Detector, error) {
	d := &detector{stretches: make([][]float32, 1)}
	for _, piece := range v.vad.next() {
		if piece.v.Reset {
			d.stretches = append(d.stretches, nil)
		}
		last := len(d.stretches) - 1
		d.stretches[last] = append(d.stretches[last], piece.v.P...)
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
	name string
}

// Name is that of the recorded recogniser.
func (a *asr) Name() string { return a.name }

// Open opens the next stream.
func (a *asr) Open(ctx context.Context, _ providers.ASRRequest) (providers.ASRStream, error) {
	steps := a.asr.next()
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

	opened, closedAt time.Duration
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
	name string
}

// Name is that of the recorded model.
func (l *llm) Name() string { return l.name }

// Generate gives the next answer.
func (l *llm) Generate(ctx context.Context, _ providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		play(ctx, l.player, l.llm.next(), yield, func(v record.LLM) (providers.Delta, record.Step, *record.Fault) {
			if v.Delta == nil {
				return providers.Delta{}, v.Step, v.Fault
			}
			return *v.Delta, v.Step, v.Fault
		})
	}
}

type tts struct {
	*player
	name string
}

// Name is that of the recorded voice.
func (s *tts) Name() string { return s.name }

// Synthesize gives the next sound.
func (s *tts) Synthesize(ctx context.Context, _ providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		play(ctx, s.player, s.tts.next(), yield, func(v record.TTS) (providers.Sound, record.Step, *record.Fault) {
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
func (p *player) due(ctx context.Context, now, asked, came time.Duration, what record.Step, fault *record.Fault) error {
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

// duplex is the one who heard and spoke by itself.
type duplex struct {
	*player
	name string
}

// Name is that of the recorded one.
func (d duplex) Name() string { return d.name }

// Rests reports what it did at this time.
func (d duplex) Rests() bool {
	rests, ok := latest(d.rest, d.now()+d.o.Within)
	return ok && rests
}

// Open opens a session.
func (d duplex) Open(context.Context, providers.DuplexRequest) (providers.DuplexSession, error) {
	return talk{d.player}, nil
}

type talk struct{ *player }

// Respond gives the next answer.
func (t talk) Respond(ctx context.Context, _ []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		play(ctx, t.player, t.duplex.next(), yield, func(v record.Duplex) (d providers.DuplexDelta, step record.Step, fault *record.Fault) {
			if v.Delta != nil {
				d = *v.Delta
			}
			if v.Sound != nil {
				d.Sound = v.Sound.Sound
				d.Sound.PCM = append([]int16(nil), v.Sound.PCM...)
			}
			return d, v.Step, v.Fault
		})
	}
}

// Write does nothing, as do the others.
func (t talk) Write([]int16) error { return nil }

// Truncate does nothing.
func (t talk) Truncate(time.Duration) error { return nil }

// Discard does nothing.
func (t talk) Discard() error { return nil }

// Close does nothing.
func (t talk) Close() error { return nil }

type fastPath struct{ *player }

// Answer says what the fast path said.
func (f *fastPath) Answer(providers.LLMRequest) (providers.Delta, bool) {
	said := f.fast.next()
	if len(said) == 0 || said[0].v.Delta == nil {
		return providers.Delta{}, false
	}
	return *said[0].v.Delta, true
}

type library struct{ *player }

// Open opens the next song.
func (m *library) Open(string) (music.Song, error) {
	steps := m.songs.next()
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
	said := m.named.next()
	if len(said) == 0 {
		return "", "", errMore
	}
	return said[0].v.Next, said[0].v.Title, said[0].v.Fault.Err()
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

// outbox takes what it took, and refuses what it refused.
type outbox struct{ *player }

// Send takes everything: the tape holds it.
func (o outbox) Send(wire.Message) {}

// Audio takes or refuses, with the stamp that it gave.
func (o outbox) Audio(uint64, []byte) (stamp uint32, ok bool) {
	offered := o.audio.next()
	if len(offered) == 0 {
		return 0, true
	}
	if a := offered[0].v; a.Stamp != nil {
		stamp = *a.Stamp
	}
	return stamp, !offered[0].v.Refused
}

// HangUp does nothing: the recording says when the connection ends.
func (o outbox) HangUp(error) {}

// Lag returns the recorded lag of the socket at this time.
func (o outbox) Lag() time.Duration {
	d, _ := latest(o.lags, o.now()+o.o.Within)
	return d
}
