package openai

import (
	"context"
	"io"
	"time"
)

// guard ends a request that gives nothing in time. It is armed only while we
// wait for the server, never while the consumer of a stream is busy. It is for
// one goroutine.
type guard struct {
	timer *time.Timer
}

// newGuard returns a context that the guard can end, with the cause errStalled.
// Its cancel function frees both.
func newGuard(ctx context.Context) (context.Context, *guard, context.CancelFunc) {
	reqCtx, cancel := context.WithCancelCause(ctx)
	g := &guard{timer: time.AfterFunc(time.Hour, func() { cancel(errStalled) })}
	g.timer.Stop()
	return reqCtx, g, func() { g.timer.Stop(); cancel(nil) }
}

// arm ends the request after d from now.
func (g *guard) arm(d time.Duration) { g.timer.Reset(d) }

// disarm lets the request live.
func (g *guard) disarm() { g.timer.Stop() }

// guardedReader arms the guard for each read: first for the first, next for the others.
type guardedReader struct {
	r           io.Reader
	guard       *guard
	first, next time.Duration
}

// Read reads with the guard armed.
func (g *guardedReader) Read(p []byte) (int, error) {
	g.guard.arm(g.first)
	n, err := g.r.Read(p)
	g.guard.disarm()
	if n > 0 {
		g.first = g.next
	}
	return n, err
}
