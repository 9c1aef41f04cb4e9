package gateway

import (
	"context"
	"time"
)

// places are places for requests that are under way.
type places chan struct{}

// take takes a place, or waits a moment for one. False: there is none.
func (p places) take(ctx context.Context) bool {
	select {
	case p <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(placeTime)
	defer timer.Stop()
	select {
	case p <- struct{}{}:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// free gives a place back.
func (p places) free() { <-p }
