package mcp

import (
	"context"
	"slices"
	"sync"
)

// lane lets one call at a time through, in the order of their coming. A device
// runs its tools one after the other and freezes meanwhile.
type lane struct {
	limit int // calls waiting; more are refused

	mu      sync.Mutex
	busy    bool
	waiting []*ticket
}

// ticket is a place in the lane. turn is closed when its holder may go.
type ticket struct{ turn chan struct{} }

// enter takes a place without waiting; nil when the lane is full.
func (l *lane) enter() *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &ticket{turn: make(chan struct{})}
	switch {
	case !l.busy:
		l.busy = true
		close(t.turn)
	case len(l.waiting) >= l.limit:
		return nil
	default:
		l.waiting = append(l.waiting, t)
	}
	return t
}

// wait blocks until it is t's turn; the holder must then call leave. When ctx
// ends or closed is closed first, the place is given up. A nil ticket is of a
// call that needs no turn.
func (l *lane) wait(ctx context.Context, closed <-chan struct{}, t *ticket) error {
	if t == nil {
		return ctx.Err()
	}
	select {
	case <-t.turn:
	case <-ctx.Done():
	case <-closed:
	}
	l.mu.Lock()
	if i := slices.Index(l.waiting, t); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.mu.Unlock()
		return context.Canceled
	}
	l.mu.Unlock()
	// It is our turn, perhaps in the same moment as the end.
	select {
	case <-ctx.Done():
	case <-closed:
	default:
		return nil
	}
	l.leave(t)
	return context.Canceled
}

// leave ends the turn of the call that is running. A nil ticket changes nothing.
func (l *lane) leave(t *ticket) {
	if t == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.busy = false
		return
	}
	close(l.waiting[0].turn)
	l.waiting = slices.Delete(l.waiting, 0, 1)
}
