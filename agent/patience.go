package agent

import (
	"context"
	"fmt"
	"time"

	"xiaozhi/agent/turn"
)

// patience ends a context when a provider gives nothing for too long. The time
// in which we make the provider wait does not count. It is for one goroutine.
type patience struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// newPatience begins to wait. The cause of the context's end is a
// context.DeadlineExceeded. The owner calls end.
func newPatience(ctx context.Context, limit time.Duration) (context.Context, *patience) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := fmt.Errorf("nothing for %s: %w", limit, context.DeadlineExceeded)
	return ctx, &patience{limit: limit, cancel: cancel, timer: time.AfterFunc(limit, func() { cancel(late) })}
}

// pause is for the time in which the provider waits for us.
func (p *patience) pause() { p.timer.Stop() }

// resume begins to wait afresh.
func (p *patience) resume() { p.timer.Reset(p.limit) }

// end ends the context and lets the timer go.
func (p *patience) end() {
	p.timer.Stop()
	p.cancel(turn.ErrDone)
}
