package chain

import (
	"sync"
	"time"
)

// breaker remembers the failures of a member: closed (it is used), open (it is left
// out), half open (one call may try it).
type breaker struct {
	limit int
	rest  time.Duration
	now   func() time.Time

	mu    sync.Mutex
	fails int       // in a row
	until time.Time // open until then, if fails has reached limit
	tries bool      // a call tries an open member
}

// allow reports whether the member may be called. After a true, one of succeeded,
// failed and released should follow.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails < b.limit {
		return true
	}
	now := b.now()
	if now.Before(b.until) {
		return false
	}
	// One call tries it. Should that one never report, the next may after another rest.
	b.until, b.tries = now.Add(b.rest), true
	return true
}

// closed reports whether the member is used as usual. It changes nothing.
func (b *breaker) closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fails < b.limit
}

// succeeded closes the breaker.
func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.tries = 0, false
}

// failed counts, and opens the breaker at its limit.
func (b *breaker) failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries = false
	if b.fails++; b.fails >= b.limit {
		b.until = b.now().Add(b.rest)
	}
}

// released ends a call that told nothing. While one tries an open member, the next
// may try; a call from before it was open changes nothing.
func (b *breaker) released() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tries {
		b.until, b.tries = b.now(), false
	}
}
