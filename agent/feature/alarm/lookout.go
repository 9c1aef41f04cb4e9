package alarm

import (
	"sync"
	"time"
)

// lookout owns when the book looks next at what is due. Its methods may be called at any time.
type lookout struct {
	look func() // has the book look, which calls begun

	mu     sync.Mutex
	timer  *time.Timer // of the next look
	at     time.Time   // when that is; zero: none is set
	asked  bool        // a look was asked for and has not begun
	closed bool
}

// in has the book look after a time; it looks again by itself then.
func (l *lookout) in(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	if !l.closed {
		l.timer, l.at = time.AfterFunc(d, l.now), time.Now().Add(d).Round(0)
	}
}

// by has the book look at a time at the latest.
func (l *lookout) by(due time.Time) {
	l.mu.Lock()
	soon := l.asked || !l.at.IsZero() && !due.Before(l.at)
	l.mu.Unlock()
	if !soon {
		l.now()
	}
}

// now has the book look.
func (l *lookout) now() {
	l.mu.Lock()
	already := l.asked
	l.asked = true
	l.mu.Unlock()
	if !already {
		l.look()
	}
}

// begun says that the book looks.
func (l *lookout) begun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.at = false, time.Time{}
}

// unset forgets when the next look is: it was meant by another clock.
func (l *lookout) unset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = time.Time{}
}

// stop ends the timer for good.
func (l *lookout) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
}
