package sherpa

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"xiaozhi/providers"
)

const (
	sampleRate = 16000
	// maxUtterance is the longest utterance, in samples.
	maxUtterance = providers.MaxUtterance * sampleRate
	// hearSamples is the number of samples taken at a time, 100 ms: a cancel is noticed between.
	hearSamples = sampleRate / 10
	// results is the room for transcripts that are not read yet: partial ones are
	// left out when only the place for the final one is left.
	results = 4
)

// result is a transcript or the error that ended the stream.
type result struct {
	transcript providers.Transcript
	err        error
}

// stream is one utterance on its way to a decoder.
type stream struct {
	done   <-chan struct{} // the stream's context
	cause  func() error
	cancel context.CancelCauseFunc
	out    chan result // written and closed by the recogniser's goroutine

	arrived chan struct{} // room for one: something of the below has changed
	mu      sync.Mutex
	waiting []int16
	total   int
	closed  bool
	ranged  bool
}

func newStream(ctx context.Context, cancel context.CancelCauseFunc) *stream {
	return &stream{
		done: ctx.Done(), cause: func() error { return endOf(ctx) }, cancel: cancel,
		out: make(chan result, results), arrived: make(chan struct{}, 1),
	}
}

// endOf returns the error of an ended context, or nil. That of the recogniser's own
// closing is a provider's error, all others pass as they are.
func endOf(ctx context.Context) error {
	if err, ok := errors.AsType[*providers.Error](context.Cause(ctx)); ok {
		return err
	}
	return ctx.Err()
}

// Write hands over PCM.
func (s *stream) Write(pcm []int16) error {
	if err := s.cause(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("sherpa: %w", providers.ErrUtteranceClosed)
	case s.total+len(pcm) > maxUtterance:
		return fmt.Errorf("sherpa: %w", providers.ErrUtteranceFull)
	}
	s.waiting = append(s.waiting, pcm...)
	s.total += len(pcm)
	s.wake()
	return nil
}

// CloseWrite says that the utterance is complete.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake()
	return nil
}

// wake lets the recogniser's goroutine look again.
func (s *stream) wake() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// take moves up to limit waiting samples to dst. It waits for sound; more is
// false when the utterance is complete and all of it was taken.
func (s *stream) take(dst []int16, limit int) (_ []int16, more bool, err error) {
	for {
		s.mu.Lock()
		n := min(limit, len(s.waiting))
		dst = append(dst, s.waiting[:n]...)
		s.waiting = slices.Delete(s.waiting, 0, n)
		closed := s.closed
		s.mu.Unlock()
		if err := s.cause(); err != nil {
			return nil, false, err
		}
		if n > 0 || closed {
			return dst, n > 0, nil
		}
		select {
		case <-s.arrived:
		case <-s.done:
		}
	}
}

// Transcripts yields what is understood.
func (s *stream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		s.mu.Lock()
		again := s.ranged
		s.ranged = true
		s.mu.Unlock()
		if again {
			yield(providers.Transcript{}, errors.New("sherpa: transcripts were already asked for"))
			return
		}
		defer s.cancel(context.Canceled)
		for {
			if err := s.cause(); err != nil {
				yield(providers.Transcript{}, err)
				return
			}
			select {
			case <-s.done:
			case r, ok := <-s.out:
				if !ok {
					if err := s.cause(); err != nil {
						yield(providers.Transcript{}, err)
					}
					return
				}
				if !yield(r.transcript, r.err) || r.err != nil || r.transcript.Final {
					return
				}
			}
		}
	}
}

// partial offers a partial transcript. It is dropped if the reader is not ready.
func (s *stream) partial(t providers.Transcript) {
	if len(s.out) < results-1 {
		s.out <- result{transcript: t}
	}
}
