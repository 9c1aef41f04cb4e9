package mcp

import "context"

// A device that runs a tool cannot be stopped, and takes no other call meanwhile.
// When the caller of a query leaves, the call goes on and keeps its place until
// the device is done; the device is only told that the result is not needed. The
// router puts the caller into the call's context, where a source that can tell
// its peer finds it. Other sources ignore it.

type callerKey struct{}

// watch is context.AfterFunc of the caller's context.
type watch func(f func()) (stop func() bool)

// WithCaller returns a context for a call that outlives its caller, with the
// caller's context for [AfterCaller].
func WithCaller(ctx, caller context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, watch(func(f func()) func() bool { return context.AfterFunc(caller, f) }))
}

// AfterCaller calls f, in a goroutine of its own, once the caller of the call that
// ctx belongs to has left. stop must be called; it returns when f is not running
// and never will.
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
