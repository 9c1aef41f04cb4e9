package chain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"xiaozhi/providers"
)

// errNoFinal is the failure of a recogniser that ends without its final transcript.
var errNoFinal = errors.New("it ended without a final transcript")

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

// Open begins an utterance with the first member that opens one. The sound is
// kept beside it, so that it can be played to the next member should it fail.
//
// A final transcript that is empty or rejected is a result, and no failure.
// Partial transcripts do not keep the next member from taking over: they are
// provisional by nature.
func (a *ASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Rate <= 0 {
		req.Rate = 16000
	}
	s := &asrStream{run: a.walk(), limit: providers.MaxUtterance * req.Rate}
	s.ended = ctx.Err
	s.log = func(from, to int, err error) { a.takeOver(ctx, from, to, err) }
	s.openMember = func(i int) (providers.ASRStream, context.CancelFunc, error) {
		memberCtx, cancel := context.WithCancel(ctx)
		stream, err := a.members[i].Open(memberCtx, req)
		if err != nil {
			cancel()
			return nil, nil, err
		}
		return stream, cancel, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openNext(); err != nil {
		return nil, err
	}
	return s, nil
}

// asrStream is one utterance. The writer and the goroutine that ranges over the
// transcripts meet under mu.
type asrStream struct {
	ended      func() error // the error of Open's context
	log        func(from, to int, err error)
	openMember func(i int) (providers.ASRStream, context.CancelFunc, error)
	limit      int // samples

	mu     sync.Mutex
	run    *run[providers.ASR]
	pcm    []int16 // all sound so far
	closed bool
	member int // the index of current
	now    providers.ASRStream
	cancel context.CancelFunc // frees now; called at the latest when the loop is left or Open's context ends
}

// openNext opens the next member that can be opened and plays it what was said
// so far. mu is held.
func (s *asrStream) openNext() error {
	for {
		before := s.run.last
		i, ok := s.run.next(anyMember)
		if !ok {
			return s.run.err()
		}
		if before >= 0 {
			s.log(before, i, s.run.lastError())
		}
		stream, cancel, err := s.openMember(i)
		if err == nil {
			if err = s.replay(stream); err != nil {
				cancel()
			}
		}
		if err == nil {
			s.member, s.now, s.cancel = i, stream, cancel
			return nil
		}
		if ended := s.ended(); ended != nil {
			s.run.breakers[i].released()
			return ended
		}
		s.run.fail(i, err)
	}
}

// replay gives a fresh member what was said so far.
func (s *asrStream) replay(stream providers.ASRStream) error {
	if len(s.pcm) > 0 {
		if err := stream.Write(s.pcm); err != nil {
			return err
		}
	}
	if s.closed {
		return stream.CloseWrite()
	}
	return nil
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
	s.pcm = append(s.pcm, pcm...)
	// A member that cannot take it tells why in its transcripts; the next one gets the sound from pcm.
	_ = s.now.Write(pcm)
	return nil
}

// CloseWrite says that the utterance is complete.
func (s *asrStream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	_ = s.now.CloseWrite() // as in Write
	return nil
}

// Transcripts yields what the members understand, up to the one final transcript.
func (s *asrStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		for {
			s.mu.Lock()
			i, stream, cancel := s.member, s.now, s.cancel
			s.mu.Unlock()
			over, err := s.listen(i, stream, yield)
			cancel()
			if over {
				return
			}
			if err = s.next(i, err); err != nil {
				yield(providers.Transcript{}, err)
				return
			}
		}
	}
}

// listen yields one member's transcripts. It is over with the final one or when
// the consumer leaves; else err says why the next member is needed.
func (s *asrStream) listen(i int, stream providers.ASRStream, yield func(providers.Transcript, error) bool) (over bool, err error) {
	for transcript, err := range stream.Transcripts() {
		if err != nil {
			return false, err
		}
		if transcript.Provider == "" {
			transcript.Provider = s.run.members[i].Name()
		}
		if transcript.Final {
			s.run.report(i, nil)
			yield(transcript, nil)
			return true, nil
		}
		if !yield(transcript, nil) {
			s.run.breakers[i].released()
			return true, nil
		}
	}
	return false, errNoFinal
}

// next opens the member after the one that failed.
func (s *asrStream) next(i int, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended := s.ended(); ended != nil {
		s.run.breakers[i].released()
		return ended
	}
	s.run.fail(i, err)
	return s.openNext()
}
