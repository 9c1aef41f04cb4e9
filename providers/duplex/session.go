package duplex

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// errClosed is the error of a session that is used after its Close.
var errClosed = errors.New("the session is closed")

// session is one talk.
type session struct {
	o     *Options
	req   providers.DuplexRequest
	outer func() context.Context // of Open
	inner func() context.Context // of all work; end ends it
	end   context.CancelFunc
	wake  chan struct{} // there is something to do

	mu     sync.Mutex
	begun  bool           // the keeper runs
	talk   talk           // what was said
	spoken *utterance     // what the user is saying
	answer *answer        // the one that runs, or nil
	cutOff bool           // the last answer was cancelled
	orders []order        // for the connection, before all else
	link   *link          // the connection, or nil
	called *link          // that on which the last answer called tools
	failed error          // of a connection, until Respond tells it
	keeper sync.WaitGroup // the goroutine that keeps the connection
}

// utterance is sound of the user.
type utterance struct {
	pcm   []int16
	sent  int    // samples, on the connection that is open
	heard string // the words that the service gave before it was asked to answer
	whole bool   // they are all of them
}

// answer is one that runs.
type answer struct {
	said    *utterance             // that it answers
	results []providers.ToolResult // or these
	asked   bool                   // the service knows
	got     bool                   // something of it was received
	renewed bool                   // it was asked again on another connection
	events  chan outcome
	left    chan struct{} // closed when nobody waits for it any more
}

// outcome is an event, or why there are no more.
type outcome struct {
	Event
	err error
}

// order is something that a connection is to do.
type order struct {
	do   func(Wire) error
	quit bool // end the connection
}

// poke tells the keeper that there is something to do.
func (s *session) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Write keeps a copy of pcm.
func (s *session) Write(pcm []int16) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner().Err() != nil {
		return fmt.Errorf("write to talk: %w", s.over())
	}
	if len(s.spoken.pcm)+len(pcm) > providers.MaxUtterance*inRate {
		return fmt.Errorf("write to talk: %w", providers.ErrUtteranceFull)
	}
	s.spoken.pcm = append(audio.Grow(s.spoken.pcm, len(pcm)), pcm...)
	if !s.begun && len(pcm) > 0 {
		s.begun = true
		s.keeper.Go(func() { s.keep(s.inner()) })
	}
	s.poke()
	return nil
}

// over is why the session has ended.
func (s *session) over() error {
	if err := s.outer().Err(); err != nil {
		return err
	}
	return errClosed
}

// Respond asks for an answer, and streams it.
func (s *session) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		if err := ctx.Err(); err != nil {
			s.mu.Lock()
			s.discard()
			s.mu.Unlock()
			yield(providers.DuplexDelta{}, err)
			return
		}
		a, err := s.ask(results)
		if err == nil {
			l := &loop{session: s, a: a, yield: yield}
			err = l.run(ctx)
			s.finish(a, l, err)
			if l.left {
				return
			}
		}
		if err == nil {
			return
		}
		if ended := s.outer().Err(); ended != nil && ctx.Err() == nil {
			yield(providers.DuplexDelta{}, ended)
			return
		}
		yield(providers.DuplexDelta{}, s.o.Account.Wrap(ctx, ctx, "respond", err))
	}
}

// ask makes the answer that runs.
func (s *session) ask(results []providers.ToolResult) (*answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &answer{said: s.spoken, results: results, events: make(chan outcome, mostEvents), left: make(chan struct{})}
	switch {
	case s.inner().Err() != nil:
		return nil, s.over()
	case s.answer != nil:
		return nil, errors.New("an answer is still running")
	case len(results) > 0 && (s.link == nil || s.called != s.link):
		return nil, errors.New("the connection is lost on which the tools were called")
	case len(results) > 0:
		a.said = &utterance{}
	default:
		s.spoken = &utterance{}
		if err := s.failed; err != nil {
			s.failed = nil
			return nil, err
		}
		if len(a.said.pcm) == 0 {
			return nil, transport.Refused(providers.BadRequest, "", "nothing was said")
		}
		s.talk.next()
	}
	s.called, s.answer, s.cutOff = nil, a, false
	s.poke()
	return a, nil
}

// finish ends the answer that runs.
func (s *session) finish(a *answer, l *loop, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(a.left)
	if s.answer != a { // it ended with its connection
		return
	}
	s.answer = nil
	switch {
	case err == nil && !l.left:
		if l.called {
			s.called = s.link
		}
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		s.cutOff = true
		if on := s.link; a.asked && on != nil {
			s.order(order{do: func(Wire) error { return on.cancel() }})
		} else if a.said.sent > 0 {
			s.order(order{do: Wire.Discard})
		}
	default:
		s.order(order{quit: true})
	}
	s.poke()
}

// order adds one for the connection that is open, if there is one. Its caller holds the lock.
func (s *session) order(o order) {
	if s.link == nil {
		return
	}
	s.orders = append(s.orders, o)
	if o.quit {
		s.link = nil
	}
	s.poke()
}

// Truncate keeps what was heard, and tells the service.
func (s *session) Truncate(heard time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner().Err() != nil {
		return s.over()
	}
	for _, p := range s.talk.cut(heard, !s.cutOff) {
		s.order(order{do: func(w Wire) error { return w.Truncate(p.item, p.long) }})
	}
	return nil
}

// Discard gives up what the user has said.
func (s *session) Discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner().Err() != nil {
		return s.over()
	}
	s.discard()
	return nil
}

// discard does so; its caller holds the lock.
func (s *session) discard() {
	if s.spoken.sent > 0 {
		s.order(order{do: Wire.Discard})
	}
	s.spoken, s.failed = &utterance{}, nil
}

// Close ends all, and waits for what it has started, which takes some tens of milliseconds.
func (s *session) Close() error {
	s.end()
	s.mu.Lock()
	s.begun = true // none is started any more
	s.mu.Unlock()
	s.keeper.Wait()
	return nil
}
