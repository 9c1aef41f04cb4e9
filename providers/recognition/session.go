package recognition

import (
	"cmp"
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
	sent   bool // the sender is done: the service knows that no more sound comes
	full   bool // the session takes no more, and the sound goes on in the next one
}

// brief is a session that was hardly worth its connection.
const (
	brief   = time.Second
	mostOff = 3 // such sessions in a row without a word: the service does not want us
)

// run recognises the utterance in one session after another until its sound is complete
// and the service has said all. The text is in t then.
func (t *talk) run(ctx context.Context) error {
	if !t.begun() {
		return ctx.Err() // nothing was said: nobody need be asked
	}
	at, off := 0, 0
	for past := range renewal {
		begun := time.Now()
		t.heard = false
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
		if off++; t.heard || time.Since(begun) > brief {
			off = 0
		}
		if off == mostOff {
			break
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
		if ended, err := from.run(); err != nil || ended != open {
			put(event{sent: true, err: err, full: ended == full})
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
			if failed == nil && t.transcript(false).Text != "" {
				return complete, t.take(Result{Kind: Over}) // better than nothing: what it understood so far
			}
			return complete, cmp.Or(failed, transport.ErrStalled)
		case e := <-events:
			switch {
			case e.sent && e.err == nil:
				complete = !e.full
				late.Reset(t.o.Final)
			case e.sent:
				failed = e.err
				late.Reset(again)
			case e.err != nil && failed != nil && !isRefusal(e.err):
				return complete, failed
			case e.err != nil && failed == nil && closedInOrder(e.err) && (t.heard || complete && t.transcript(false).Text != ""):
				return complete, t.take(Result{Kind: Over}) // not all services say more than that
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

// closedInOrder reports whether a service has closed the connection as one that has said all.
func closedInOrder(err error) bool {
	refused, ok := errors.AsType[*transport.Refusal](err)
	return ok && refused.Code == transport.ClosedInOrder
}

// isRefusal reports whether a service has said why.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*transport.Refusal](err)
	return ok
}

// sender hands the sound of one session over. run belongs to one goroutine.
type sender struct {
	*stream
	session Session
	past    int // sessions before
	stopped <-chan struct{}
	pace    float64
	burst   time.Duration

	mu sync.Mutex
	at int // samples sent
}

// position returns how far the sound went.
func (s *sender) position() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// ending says why nothing more is sent.
type ending int

const (
	open     ending = iota // nobody wants it
	complete               // all was sent, and the service knows
	full                   // the session takes no more, and the service knows
)

// run sends until the sound is complete, the session is over or takes no more.
func (s *sender) run() (ending, error) {
	begun, first := time.Now(), s.position()
	longest := int(s.o.Longest.Milliseconds()) * s.req.Rate / 1000
	for {
		at := s.position()
		pcm, more, closed := s.next(at, s.past)
		switch {
		case !more && !closed:
			return open, nil
		case !more:
			return complete, s.session.Finish()
		case longest > 0 && at > first && at-first+len(pcm) > longest:
			return full, s.session.Finish()
		case !s.wait(begun, at-first):
			return open, nil
		}
		if err := s.session.Send(pcm); err != nil {
			return open, err
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
