package alarm

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Work is done one after the other, in order, each piece with its own time; what was there when the queue was closed is
// done, and nothing else is.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, stop := context.WithCancel(t.Context())
		stop()
		q := newQueue(asked, 10*time.Second)
		var mu sync.Mutex
		var all []int
		done := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		piece := func(n int, takes time.Duration) func(context.Context) {
			return func(ctx context.Context) {
				select {
				case <-time.After(takes):
				case <-ctx.Done():
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, n)
			}
		}
		began := time.Now()
		q.later(3*time.Second, piece(4, time.Second))
		q.do(piece(1, time.Hour)) // is given up
		q.do(func(ctx context.Context) { q.do(piece(5, time.Second)); piece(2, time.Second)(ctx) })
		q.do(piece(3, time.Second))
		q.catchUp(t.Context())
		if took := time.Since(began); took != 12*time.Second || !slices.Equal(done(), []int{1, 2, 3}) {
			t.Errorf("%v after %v", done(), took)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if q.catchUp(short); short.Err() == nil {
			t.Error("it has not waited")
		}
		q.later(time.Second, piece(7, 0)) // is too late
		q.do(piece(6, 2*time.Second))
		q.close()
		if q.do(piece(8, 0)) || !slices.Equal(done(), []int{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%v at the end", done())
		}
		q.catchUp(t.Context()) // waits for nothing
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(done()) != 6 {
			t.Errorf("%v after the end", done())
		}
	})
}
