package ui

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// patience is how long a page waits for its turn: what waits for a service or a disk holds nobody up for longer.
const patience = 250 * time.Millisecond

// turns has pages be made one after the other, half as many at a time as there are processors, so that many browsers at
// once do not take the processor from those who are being spoken to (M20 of docs/bench.md).
type turns struct{ free *semaphore.Weighted }

func newTurns() turns {
	return turns{semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)/2)))}
}

// take waits for a turn, which done ends; done may be called again. Whoever waits for longer than patience goes on without.
func (t turns) take(ctx context.Context) (done func()) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if t.free.Acquire(ctx, 1) != nil {
		return func() {}
	}
	runtime.Gosched() // what else is ready, such as a packet that is due, goes first
	return sync.OnceFunc(func() { t.free.Release(1) })
}

type turnKey struct{}

// inTurn has a handler wait for its turn, which ends when its page is written.
func (t turns) inTurn(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		done := t.take(r.Context())
		defer done()
		h(w, r.WithContext(context.WithValue(r.Context(), turnKey{}, done)))
	}
}

// endTurn ends the turn of a request that has one: a browser may read slowly.
func endTurn(r *http.Request) {
	if done, ok := r.Context().Value(turnKey{}).(func()); ok {
		done()
	}
}
