// Package idle ends work that gives nothing for too long.
package idle

import (
	"context"
	"fmt"
	"time"
)

// Timeout ends a context when the one who works in it gives nothing for too long.
// The time in which we make it wait does not count. It is for one goroutine.
type Timeout struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// WithTimeout begins to wait. The cause of the context's end is then a
// [context.DeadlineExceeded]. The caller calls Close.
func WithTimeout(ctx context.Context, limit time.Duration) (context.Context, *Timeout) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := fmt.Errorf("nothing for %s: %w", limit, context.DeadlineExceeded)
	return ctx, &Timeout{limit: limit, cancel: cancel, timer: time.AfterFunc(limit, func() { cancel(late) })}
}

// Pause is for the time in which the one who works waits for us.
func (t *Timeout) Pause() { t.timer.Stop() }

// Resume begins to wait afresh.
func (t *Timeout) Resume() { t.timer.Reset(t.limit) }

// Close ends the context and lets the timer go.
func (t *Timeout) Close() {
	t.timer.Stop()
	t.cancel(nil)
}
