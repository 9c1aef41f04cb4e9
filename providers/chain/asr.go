package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
)

var (
	errNoFinal     = errors.New("it ended without a final transcript")
	errRangedTwice = errors.New("transcripts were already asked for")
)

// ASR is a chain of recognisers.
type ASR struct{ list[providers.ASR] }

// NewASR makes a chain. It has no members of its own: at least one is needed.
func NewASR(members []providers.ASR, o Options) (*ASR, error) {
	l, err := newList(members, o, "recognize")
	if err != nil {
		return nil, err
	}
	return &ASR{l}, nil
}

// Streams reports whether the member that will be asked first gives partial transcripts.
func (a *ASR) Streams() bool {
	for i := range a.members {
		if a.breakers[i].closed() {
			return a.streams(i)
		}
	}
	return false
}

// streams reports whether what a member understands before the end is more than a guess.
func (a *ASR) streams(i int) bool {
	streamer, ok := a.members[i].(providers.Streamer)
	return ok && streamer.Streams()
}

// Open begins an utterance with the first member that opens one. The sound is
// kept beside it and played to the next member should it fail, or be late with
// its final transcript after the end of the sound: then both are asked, and the
// first final transcript wins.
//
// A final transcript that is empty or rejected is a result, and no failure; but
// while another member is being asked, that one may still give a better one.
// Partial transcripts do not keep the next member from taking over: they are
// provisional by nature.
func (a *ASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Rate <= 0 {
		req.Rate = 16000
	}
	s := &asrStream{limit: providers.MaxUtterance * req.Rate, complete: make(chan struct{}), live: map[int]providers.ASRStream{}}
	walk := a.walk()
	for {
		before := walk.last
		i, ok := walk.next(anyMember)
		if !ok {
			return nil, walk.err()
		}
		if before >= 0 {
			a.takeOver(ctx, before, i, walk.lastError())
		}
		memberCtx, cancel := context.WithCancel(ctx)
		stream, err := a.members[i].Open(memberCtx, req)
		if err == nil {
			s.live[i] = stream
			s.transcripts = func(yield func(providers.Transcript, error) bool) { a.listen(ctx, req, s, walk, cancel, yield) }
			return s, nil
		}
		cancel()
		if ctx.Err() != nil {
			a.breakers[i].released()
			return nil, ctx.Err()
		}
		walk.fail(i, err)
	}
}

// listen yields what the members understand. The walk's last one is open
// already; free closes it.
func (a *ASR) listen(ctx context.Context, req providers.ASRRequest, s *asrStream, walk *run[providers.ASR],
	free context.CancelFunc, yield func(providers.Transcript, error) bool,
) {
	r := newRace(walk, yield)
	first := walk.last
	r.ask = func(ctx context.Context, i int) iter.Seq2[providers.Transcript, error] {
		return func(yield func(providers.Transcript, error) bool) {
			stream, err := s.of(i, i != first, func() (providers.ASRStream, error) { return a.members[i].Open(ctx, req) })
			if err != nil {
				yield(providers.Transcript{}, err)
				return
			}
			defer s.drop(i)
			stream.Transcripts()(yield)
		}
	}
	r.weigh = func(i int, tr providers.Transcript) weight {
		switch {
		case tr.Final && (tr.Rejected || tr.Text == ""):
			return doubt
		case tr.Final:
			return answer
		case i != r.leader(), i != first && !a.streams(i):
			return unasked // two members' provisional texts in turn would be none, and the first one's word is for all
		}
		return nothing
	}
	r.name = func(tr *providers.Transcript, who string) { tr.Provider = cmp.Or(tr.Provider, who) }
	r.last = func(tr providers.Transcript) bool { return tr.Final }
	r.empty = errNoFinal
	r.ready, r.since = s.complete, s.end
	r.close = func(a *timeline.Attempt) { a.Sound = time.Duration(s.length()) * time.Second / time.Duration(req.Rate) }
	if err := r.run(ctx, free); err != nil {
		yield(providers.Transcript{}, err)
	}
}

// asrStream is one utterance. The writer and the pumps of the members meet under mu.
type asrStream struct {
	limit       int           // samples
	complete    chan struct{} // closed by CloseWrite
	transcripts iter.Seq2[providers.Transcript, error]

	mu     sync.Mutex
	pcm    []int16 // all sound so far
	closed bool
	ended  time.Time // when it was closed
	ranged bool
	live   map[int]providers.ASRStream // those that hear it
}

// of returns a member's stream. A stream that is to be opened gets at once what
// was said so far.
func (s *asrStream) of(i int, fresh bool, open func() (providers.ASRStream, error)) (providers.ASRStream, error) {
	if !fresh {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.live[i], nil
	}
	stream, err := open()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pcm) > 0 {
		if err := stream.Write(s.pcm); err != nil {
			return nil, err
		}
	}
	if s.closed {
		if err := stream.CloseWrite(); err != nil {
			return nil, err
		}
	}
	s.live[i] = stream
	return stream, nil
}

// length counts the sound, in samples.
func (s *asrStream) length() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pcm)
}

// end returns when the sound was over, or zero.
func (s *asrStream) end() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// drop ends what a member hears.
func (s *asrStream) drop(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, i)
}

// Write keeps the sound and hands it on.
func (s *asrStream) Write(pcm []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("write to utterance: %w", providers.ErrUtteranceClosed)
	}
	if len(s.pcm)+len(pcm) > s.limit {
		return fmt.Errorf("write to utterance: %w", providers.ErrUtteranceFull)
	}
	s.pcm = append(audio.Grow(s.pcm, len(pcm)), pcm...)
	for _, stream := range s.live {
		// A member that cannot take it tells why in its transcripts; the next one gets the sound from pcm.
		_ = stream.Write(pcm)
	}
	return nil
}

// CloseWrite says that the utterance is complete.
func (s *asrStream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed, s.ended = true, time.Now()
	close(s.complete)
	for _, stream := range s.live {
		_ = stream.CloseWrite() // as in Write
	}
	return nil
}

// Transcripts yields what the members understand, up to the one final transcript.
func (s *asrStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		s.mu.Lock()
		again := s.ranged
		s.ranged = true
		s.mu.Unlock()
		if again {
			yield(providers.Transcript{}, fmt.Errorf("recognize utterance: %w", errRangedTwice))
			return
		}
		s.transcripts(yield)
	}
}
