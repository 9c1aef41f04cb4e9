package mcp

import "context"

// A device that is at work cannot be stopped, and takes no other call meanwhile.
// So when the caller of a query leaves, the call itself goes on and keeps its
// place until the device is done, and only the device is told that nobody waits
// any more. The router says so through the call's context, in which a source
// that can pass it on finds it; other sources need not care.

type callerKey struct{}

// watch is context.AfterFunc of the caller's context.
type watch func(f func()) (stop func() bool)

// WithCaller returns a context for a call that outlives its caller.
func WithCaller(ctx, caller context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, watch(func(f func()) func() bool { return context.AfterFunc(caller, f) }))
}

// AfterCaller calls f, in a goroutine of its own, once nobody waits any more
// for the call that ctx belongs to. The caller must call stop, which returns
// when f is not running and never will.
func AfterCaller(ctx context.Context, f func()) (stop func()) {
	w, ok := ctx.Value(callerKey{}).(watch)
	if !ok {
		return func() {}
	}
	done := make(chan struct{})
	cancel := w(func() {
		defer close(done)
		f()
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}
