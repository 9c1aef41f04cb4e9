package router

import (
	"context"
	"slices"
	"sync"
)

// queue lets one call at a time through, first come first served, those from outside after
// all others: a device runs its tools one after the other and does nothing else meanwhile.
type queue struct {
	limit int // calls waiting; more are refused: maxWaiting

	mu      sync.Mutex
	busy    bool
	waiting []*slot
	outside []*slot // calls from outside that wait; outsideShare times limit at most
}

// Calls that may wait for one device. No listener waits for those from outside,
// so outsideShare times as many of them may.
const (
	maxWaiting   = 16
	outsideShare = 16
)

// slot is a place in the queue. turn is closed when its holder may go.
type slot struct{ turn chan struct{} }

// acquire takes a place without waiting; nil when the queue is full.
func (l *queue) acquire(outside bool) *slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &slot{turn: make(chan struct{})}
	line, limit := &l.waiting, l.limit
	if outside {
		line, limit = &l.outside, outsideShare*l.limit
	}
	switch {
	case !l.busy:
		l.busy = true
		close(t.turn)
	case len(*line) >= limit:
		return nil
	default:
		*line = append(*line, t)
	}
	return t
}

// wait blocks until it is t's turn; the holder must then call release. When ctx ends or
// closed is closed first, the place is given up. A nil slot is of a call without a turn.
func (l *queue) wait(ctx context.Context, closed <-chan struct{}, t *slot) error {
	if t == nil {
		return ctx.Err()
	}
	select {
	case <-t.turn:
	case <-ctx.Done():
	case <-closed:
	}
	l.mu.Lock()
	for _, line := range []*[]*slot{&l.waiting, &l.outside} {
		if i := slices.Index(*line, t); i >= 0 {
			*line = slices.Delete(*line, i, i+1)
			l.mu.Unlock()
			return context.Canceled
		}
	}
	l.mu.Unlock()
	// It is our turn, perhaps in the same moment as the end.
	select {
	case <-ctx.Done():
	case <-closed:
	default:
		return nil
	}
	l.release(t)
	return context.Canceled
}

// release ends the turn of the call that is running. A nil slot changes nothing.
func (l *queue) release(t *slot) {
	if t == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line := &l.waiting
	if len(*line) == 0 {
		line = &l.outside
	}
	if len(*line) == 0 {
		l.busy = false
		return
	}
	close((*line)[0].turn)
	*line = slices.Delete(*line, 0, 1)
}
