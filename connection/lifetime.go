package connection

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// lifetime owns the context of a session and the goroutines that run in it. Its
// methods may be called at the same time.
type lifetime struct {
	began   time.Time
	context func() context.Context
	cancel  context.CancelCauseFunc
	log     *slog.Logger
	wg      sync.WaitGroup
}

func newLifetime(ctx context.Context, log *slog.Logger) *lifetime {
	ctx, cancel := context.WithCancelCause(ctx)
	return &lifetime{began: time.Now(), context: func() context.Context { return ctx }, cancel: cancel, log: log}
}

// end ends the session with a cause, the first of which counts. It returns at once.
func (l *lifetime) end(cause error) { l.cancel(cause) }

// cause is why the session ended; nil while it goes on.
func (l *lifetime) cause() error { return context.Cause(l.context()) }

// start runs f on a goroutine that wait joins.
func (l *lifetime) start(name string, f func(ctx context.Context)) {
	l.wg.Go(func() { l.guard(name, func() { f(l.context()) }) })
}

// wait joins all goroutines. Nothing may be started any more.
func (l *lifetime) wait() { l.wg.Wait() }

// guard runs f. A panic in it ends this session and nothing else.
func (l *lifetime) guard(name string, f func()) {
	defer l.recover(name)
	f()
}

// recover ends the session of a goroutine that panics. It must be deferred.
func (l *lifetime) recover(name string) {
	if p := recover(); p != nil {
		l.log.Error("panic in a connection", "goroutine", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		l.end(failed("panic in "+name, fmt.Errorf("%v", p)))
	}
}

// within waits for done, at most for d, and reports whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
