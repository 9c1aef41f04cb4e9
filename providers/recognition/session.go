package recognition

import (
	"context"
	"errors"
	"sync"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// event carries a message that the receiver of a session has got, or the end of its sender.
type event struct {
	result Result
	err    error
	sent   bool // the sender is done: the sound is complete, and the service knows
}

// run recognises the utterance in one session after another until its sound is complete
// and the service has said all. The text is in t then.
func (t *talk) run(ctx context.Context) error {
	if !t.begun() {
		return ctx.Err() // nothing was said: nobody need be asked
	}
	at := 0
	for past := range renewal {
		sent, complete, err := t.session(ctx, at, past)
		if err != nil || complete || t.left {
			return err
		}
		at = sent
		if _, more, closed := t.next(at, past+1); !more {
			if closed {
				return nil
			}
			return ctx.Err()
		}
	}
	return errors.New("the service ends every session before the speech does")
}

// dial opens a session, and tries again where that may help.
func (t *talk) dial(ctx context.Context) (Session, error) {
	skewed := false
	for try := 1; ; try++ {
		s, err := t.o.Dial(ctx, t.req)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		refused, ok := errors.AsType[*transport.Refusal](err)
		if ok && refused.Skewed && !skewed { // it was no try: the time was not right
			skewed = true
			try--
			continue
		}
		if try >= t.o.Tries || ok && refused.Kind != providers.Unavailable {
			return nil, err
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// session sends the sound behind a position and reads until the session is over. sent is
// how far the sound went, complete whether all of it was answered.
func (t *talk) session(ctx context.Context, at, past int) (sent int, complete bool, err error) {
	s, err := t.dial(ctx)
	if err != nil {
		return at, false, err
	}
	events, gone := make(chan event), make(chan struct{})
	var pumps sync.WaitGroup
	defer pumps.Wait()
	defer s.Close()
	defer t.over()
	defer close(gone)
	from := &sender{stream: t.stream, session: s, at: at, past: past, stopped: gone, pace: t.o.Pace, burst: t.o.Burst}
	put := func(e event) bool {
		select {
		case events <- e:
			return true
		case <-gone:
			return false
		}
	}
	pumps.Go(func() {
		if err := from.run(); err != nil || from.complete {
			put(event{sent: true, err: err})
		}
	})
	pumps.Go(func() {
		for {
			r, err := s.Receive()
			if !put(event{result: r, err: err}) || err != nil || r.Kind == Over {
				return
			}
		}
	})
	complete, err = t.listen(ctx, events)
	return from.position(), complete, err
}

// listen takes the events of a session until it is over. complete says whether the sound
// was sent to its end.
func (t *talk) listen(ctx context.Context, events <-chan event) (complete bool, err error) {
	late := time.NewTimer(time.Hour)
	late.Stop()
	defer late.Stop()
	var failed error // of the sender; the service may still say why
	for !t.left {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-late.C:
			if complete && failed == nil && t.transcript(false).Text != "" {
				return true, nil // better than nothing: what it understood so far
			}
			if failed != nil {
				return complete, failed
			}
			return complete, transport.ErrStalled
		case e := <-events:
			switch {
			case e.sent && e.err == nil:
				complete = true
				late.Reset(t.o.Final)
			case e.sent:
				failed = e.err
				late.Reset(again)
			case e.err != nil && failed != nil && !isRefusal(e.err):
				return complete, failed
			case e.err != nil:
				return complete, e.err
			default:
				if err := t.take(e.result); err != nil {
					return complete, err
				}
				if e.result.Kind == Over {
					return complete, nil
				}
			}
		}
	}
	return complete, nil
}

// isRefusal reports whether a service has said why.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*transport.Refusal](err)
	return ok
}

// sender hands the sound of one session over. run belongs to one goroutine.
type sender struct {
	*stream
	session  Session
	past     int // sessions before
	stopped  <-chan struct{}
	pace     float64
	burst    time.Duration
	complete bool // all was sent, and the service knows

	mu sync.Mutex
	at int // samples sent
}

// position returns how far the sound went.
func (s *sender) position() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// run sends until the sound is complete or the session is over.
func (s *sender) run() error {
	begun, first := time.Now(), s.position()
	for {
		at := s.position()
		pcm, more, closed := s.next(at, s.past)
		if !more {
			if !closed {
				return nil
			}
			if err := s.session.Finish(); err != nil {
				return err
			}
			s.complete = true
			return nil
		}
		if !s.wait(begun, at-first) {
			return nil
		}
		if err := s.session.Send(pcm); err != nil {
			return err
		}
		s.mu.Lock()
		s.at = at + len(pcm)
		s.mu.Unlock()
	}
}

// wait keeps the pace: so many samples were sent since it began.
func (s *sender) wait(begun time.Time, samples int) bool {
	if s.pace <= 0 {
		return true
	}
	due := time.Duration((float64(samples)/float64(s.req.Rate) - s.burst.Seconds()) / s.pace * float64(time.Second))
	ahead := due - time.Since(begun)
	if ahead <= 0 {
		return true
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stopped:
		return false
	}
}
