package mail

import (
	"context"
	"sync"
	"time"
)

const (
	lookAgain = time.Minute     // the clock, which may be set, is looked at so often while a letter waits
	lookSoon  = 5 * time.Second // after a failure
	purgeIn   = time.Hour       // how often those are looked for that are over for long
	endAtOnce = 64              // letters that are ended at once
)

// tidy ends what has waited too long, and forgets what is over for long.
func (f *Office) tidy(ctx context.Context) {
	f.sweep.begun()
	next, err := f.expire(ctx)
	if err != nil {
		f.o.Log.Error("messages that have waited too long are not ended", "err", err)
		f.sweep.in(lookSoon)
		return
	}
	if f.sweep.purges(time.Now()) {
		if err := f.o.Store.Purge(ctx, time.Now().Add(-keepOver)); err != nil {
			f.o.Log.Warn("old messages are not deleted", "err", err)
		}
	}
	if !next.IsZero() {
		f.sweep.in(min(max(time.Until(next), time.Millisecond), lookAgain))
	}
}

// expire ends what has waited too long, and returns when the next letter does; zero: none waits.
func (f *Office) expire(ctx context.Context) (time.Time, error) {
	for {
		ended, err := f.o.Store.Expire(ctx, endAtOnce)
		for _, l := range ended {
			f.tell(l)
		}
		if err != nil {
			return time.Time{}, err
		}
		if len(ended) < endAtOnce {
			return f.o.Store.NextEnd(ctx)
		}
	}
}

// sweeper owns when the office looks next at what has waited too long. Its methods may be called at any time.
type sweeper struct {
	look func() // has the office look, which calls begun

	mu     sync.Mutex
	timer  *time.Timer // of the next look
	at     time.Time   // when that is; zero: none is set
	asked  bool        // a look was asked for and has not begun
	purged time.Time
	closed bool
}

// in has the office look after a time.
func (s *sweeper) in(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().Add(d)
	if s.closed || s.asked || !s.at.IsZero() && s.at.Before(at) {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer, s.at = time.AfterFunc(d, s.now), at
}

// by has the office look at a time at the latest.
func (s *sweeper) by(due time.Time) { s.in(min(max(time.Until(due), 0), lookAgain)) }

// now has the office look.
func (s *sweeper) now() {
	s.mu.Lock()
	already := s.asked || s.closed
	s.asked = s.asked || !s.closed
	s.mu.Unlock()
	if !already {
		s.look()
	}
}

// begun says that the office looks.
func (s *sweeper) begun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.at = false, time.Time{}
}

// purges reports whether it is time to forget what is over for long, and takes it for done.
func (s *sweeper) purges(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.purged) < purgeIn {
		return false
	}
	s.purged = now
	return true
}

// stop ends the timer for good.
func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.timer != nil {
		s.timer.Stop()
	}
}
