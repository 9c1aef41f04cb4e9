package duplex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// errQuit ends a connection that is of no more use.
var errQuit = errors.New("the connection is given up")

// errLeft ends a connection that the service is about to end.
var errLeft = fmt.Errorf("%w: the service ends it", errQuit)

// link is a connection.
type link struct {
	wire    Wire
	gone    chan struct{} // closed when nothing more is wanted of it
	served  atomic.Bool   // an answer came on it
	leaving atomic.Bool   // it ends soon
	reading sync.Mutex    // held while a message is read and its answer found, and by Cancel
	due     time.Time     // when more sound may be sent
}

// keep holds a connection whenever there is something to do, until ctx ends.
func (s *session) keep(ctx context.Context) {
	var ended Wire // whose session may be gone on with; nil: there is none
	for s.wanted(ctx) {
		wire, err := s.dialAfter(ctx, ended)
		ended = nil
		if err != nil {
			s.lost(nil, err)
			continue
		}
		l := &link{wire: wire, gone: make(chan struct{})}
		s.mu.Lock()
		s.link, s.orders = l, nil
		s.mu.Unlock()
		err = s.serve(ctx, l)
		if s.resumable(err) {
			ended = wire
		}
		s.lost(l, err)
	}
}

// resumable reports whether the service has ended a session between two answers, for a reason of its own. After an answer
// that was cut the service would remember more of it than was heard.
func (s *session) resumable(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer == nil && !s.cutOff && (errors.Is(err, errLeft) || !errors.Is(err, errQuit))
}

// dialAfter opens a connection that goes on with the session of another, if it can, else a new one.
func (s *session) dialAfter(ctx context.Context, ended Wire) (Wire, error) {
	if ended != nil && s.o.Resume != nil {
		if w, err := s.o.Resume(ctx, s.req, ended); w != nil && err == nil {
			return w, nil
		}
	}
	return s.dial(ctx)
}

// wanted waits until a connection is needed. It says whether the session goes on.
func (s *session) wanted(ctx context.Context) bool {
	for {
		s.mu.Lock()
		want := s.answer != nil || s.failed == nil && len(s.spoken.pcm) > 0
		s.mu.Unlock()
		if want && ctx.Err() == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.wake:
		}
	}
}

// dial opens a connection, and tries again where that may help.
func (s *session) dial(ctx context.Context) (Wire, error) {
	for try := 1; ; try++ {
		req := s.req
		s.mu.Lock()
		req.History = s.talk.all()
		s.mu.Unlock()
		w, err := s.o.Dial(ctx, req)
		if err == nil || ctx.Err() != nil {
			return w, err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = transport.ErrStalled // a time limit, and not the end of ctx
		}
		refused, ok := errors.AsType[*transport.Refusal](err)
		if try >= s.o.Tries || ok && refused.Kind != providers.Unavailable {
			return nil, err
		}
		if !transport.Wait(ctx, again) {
			return nil, ctx.Err()
		}
	}
}

// lost looks at what is to become of the answer that runs when a connection has ended.
func (s *session) lost(l *link, err error) {
	s.mu.Lock()
	if s.link == l {
		s.link = nil
	}
	s.orders = nil
	s.spoken.sent, s.spoken.heard = 0, ""
	a := s.answer
	served := l != nil && l.served.Load()
	switch {
	case a == nil:
		// Between two turns a service may end its session; but one that ends at the
		// user's first word would be dialled for ever.
		if !errors.Is(err, errQuit) && !served && len(s.spoken.pcm) > 0 {
			s.failed = err
		}
	case len(a.results) == 0 && (errors.Is(err, errQuit) || served && !a.got && !a.renewed):
		a.renewed = a.renewed || !errors.Is(err, errQuit)
		a.asked, a.said.sent, a.said.heard = false, 0, ""
		a = nil
	default:
		s.answer = nil
	}
	s.mu.Unlock()
	if a != nil {
		select {
		case a.events <- outcome{err: err}:
		case <-a.left:
		}
	}
}

// serve uses a connection until it ends.
func (s *session) serve(ctx context.Context, l *link) error {
	var reading sync.WaitGroup
	read := make(chan error, 1)
	reading.Go(func() { read <- s.receive(l) })
	err := s.send(ctx, l, read)
	close(l.gone)
	l.wire.Close()
	reading.Wait()
	return err
}

// receive hands events to the answer that runs; all others are dropped.
func (s *session) receive(l *link) error {
	for empty := 0; ; {
		e, a, err := s.event(l)
		if err != nil {
			return err
		}
		if e.Leaving {
			l.leaving.Store(true)
			s.poke()
		}
		if e.empty() && e.Doubt == nil {
			if empty++; empty > mostEmpty {
				return errors.New("the service sends nothing that means anything")
			}
			continue
		}
		empty = 0
		if a == nil {
			continue
		}
		l.served.Store(l.served.Load() || e.Done)
		select {
		case a.events <- outcome{Event: e}:
		case <-a.left:
		case <-l.gone:
			return errQuit
		}
	}
}

// event waits for the next event and finds the answer that it belongs to, nil for none.
func (s *session) event(l *link) (Event, *answer, error) {
	read, err := l.wire.Receive()
	if err != nil {
		return Event{}, nil, err
	}
	l.reading.Lock()
	defer l.reading.Unlock()
	e, err := read()
	if err != nil || e.empty() && e.Doubt == nil {
		return e, nil, err
	}
	return e, s.asked(&e), nil
}

// cancel gives an answer up. No event that was read before can be taken for a later one's.
func (l *link) cancel() error {
	l.reading.Lock()
	defer l.reading.Unlock()
	return l.wire.Cancel()
}

// asked returns the answer that an event belongs to, if one was asked for. The user's words
// come before that too; they are kept for it.
func (s *session) asked(e *Event) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, u := s.answer, s.spoken
	if a != nil {
		u = a.said
	}
	if a == nil || !a.asked {
		if e.Heard != "" {
			u.heard = ""
		}
		if u.sent > 0 && e.Heard+e.More != "" {
			u.heard, u.whole = u.heard+e.Heard+e.More, e.Heard != ""
		}
		return nil
	}
	a.got = true
	switch {
	case u.heard == "" || e.Heard != "":
	case u.whole && e.More == "":
		e.Heard = u.heard
	default:
		e.More = u.heard + e.More
	}
	u.heard = ""
	return a
}

// send does what is to be done on a connection until it ends.
func (s *session) send(ctx context.Context, l *link, read <-chan error) error {
	for {
		do, wait := s.next(l)
		var err error
		switch {
		case wait > 0:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-s.wake:
			case err = <-read:
			case <-ctx.Done():
				err = ctx.Err()
			}
			timer.Stop()
		case do == nil:
			select {
			case <-s.wake:
			case err = <-read:
			case <-ctx.Done():
				err = ctx.Err()
			}
		default:
			if err = do(l.wire); err != nil && !errors.Is(err, errQuit) {
				err = why(ctx, err, read)
			}
		}
		if err != nil {
			return err
		}
	}
}

// why returns the reason that the service has given for an error, else the error.
func why(ctx context.Context, err error, read <-chan error) error {
	if errors.Is(err, ErrNotOffered) {
		return errQuit
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case said := <-read:
		if _, ok := errors.AsType[*transport.Refusal](said); ok {
			return said
		}
	case <-timer.C:
	case <-ctx.Done():
	}
	return err
}

// next returns what is to be done on a connection, or how long to wait until sound may be
// sent, or neither.
func (s *session) next(l *link) (do func(Wire) error, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.orders) > 0 {
		o := s.orders[0]
		s.orders = s.orders[1:]
		if o.quit {
			return quit, 0
		}
		return o.do, 0
	}
	a := s.answer
	switch {
	case a != nil && !a.asked:
		if len(a.results) == 0 && a.said.sent < len(a.said.pcm) {
			return s.piece(l, a.said, true)
		}
		a.asked = true
		if len(a.results) > 0 {
			return func(w Wire) error { return w.Results(a.results) }, 0
		}
		return Wire.Commit, 0
	case a == nil && l.leaving.Load() && s.spoken.sent == 0:
		s.link = nil
		return leave, 0
	case a == nil || !s.o.Hold:
		return s.piece(l, s.spoken, false)
	}
	return nil, 0
}

func quit(Wire) error { return errQuit }

func leave(Wire) error { return errLeft }

// piece returns the sending of the next piece of an utterance; the last one may be short.
func (s *session) piece(l *link, u *utterance, last bool) (do func(Wire) error, wait time.Duration) {
	n := inRate * int(s.o.Frame/time.Millisecond) / 1000
	switch {
	case len(u.pcm)-u.sent >= n:
	case last && len(u.pcm) > u.sent:
		n = len(u.pcm) - u.sent
	default:
		return nil, 0
	}
	if s.o.Pace > 0 {
		now := time.Now()
		if wait = l.due.Sub(now); wait > 0 {
			return nil, wait
		}
		if l.due.Before(now.Add(-s.o.Frame)) {
			l.due = now.Add(-s.o.Frame) // what was not used is not saved up
		}
		l.due = l.due.Add(time.Duration(float64(n) / inRate / s.o.Pace * float64(time.Second)))
	}
	pcm := u.pcm[u.sent : u.sent+n : u.sent+n]
	u.sent += n
	return func(w Wire) error { return w.Append(pcm) }, 0
}
