package transport

import (
	"context"
	"io"
	"time"
)

// Guard ends a request that gives nothing in time. It is armed only while we
// wait for the server, never while the consumer of a stream is busy. It is for
// one goroutine.
type Guard struct {
	timer *time.Timer
}

// NewGuard returns a context that the guard can end, with the cause [ErrStalled].
// Its cancel function frees both.
func NewGuard(ctx context.Context) (context.Context, *Guard, context.CancelFunc) {
	reqCtx, cancel := context.WithCancelCause(ctx)
	g := &Guard{timer: time.AfterFunc(time.Hour, func() { cancel(ErrStalled) })}
	g.timer.Stop()
	return reqCtx, g, func() { g.timer.Stop(); cancel(nil) }
}

// Arm ends the request after d from now.
func (g *Guard) Arm(d time.Duration) { g.timer.Reset(d) }

// Disarm lets the request live.
func (g *Guard) Disarm() { g.timer.Stop() }

// GuardedReader arms the guard for each read: First for the first, Next for the others.
type GuardedReader struct {
	R           io.Reader
	Guard       *Guard
	First, Next time.Duration
}

// Read reads with the guard armed.
func (g *GuardedReader) Read(p []byte) (int, error) {
	g.Guard.Arm(g.First)
	n, err := g.R.Read(p)
	g.Guard.Disarm()
	if n > 0 {
		g.First = g.Next
	}
	return n, err
}
