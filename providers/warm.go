package providers

import "context"

// Warmer is a provider that can get ready for a request that will soon come, so
// that the request need not wait for it: open a connection, load a model.
type Warmer interface {
	// Warm gets ready, or returns at once when there is nothing to do, or when
	// another goroutine is at it. It costs no money. It waits for the other side,
	// within its own time limit and that of ctx; an error is for the log only: the
	// request that follows tells by itself what is wrong. It may be called by any
	// number of goroutines at any time, for instance whenever a user begins to speak.
	Warm(ctx context.Context) error
}
