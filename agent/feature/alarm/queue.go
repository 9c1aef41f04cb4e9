package alarm

import (
	"context"
	"sync"
	"time"
)

// queue has pieces of work done one after the other, in the order in which they came. It has no bound: each conversation and
// each reminder that rings has a piece or two at a time. A goroutine runs only while there is something to do. Its
// methods may be called at any time, by the work too, but for close.
type queue struct {
	life func() (context.Context, context.CancelFunc) // for one piece of work

	wg      sync.WaitGroup
	mu      sync.Mutex
	todo    []func(context.Context)
	running bool // a goroutine works off todo
	closed  bool
	over    chan struct{} // closed with the queue
}

// newQueue makes a queue whose work has the values of ctx, not its end, and limit for each piece.
func newQueue(ctx context.Context, limit time.Duration) *queue {
	ctx = context.WithoutCancel(ctx)
	return &queue{over: make(chan struct{}), life: func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, limit) }}
}

// do has work done. It reports whether it will be.
func (q *queue) do(work func(context.Context)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.todo = append(q.todo, work)
	if !q.running {
		q.running = true
		q.wg.Go(q.work)
	}
	return true
}

// later has work done after a while, unless the queue is closed by then.
func (q *queue) later(d time.Duration, work func(context.Context)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.wg.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			q.do(work)
		case <-q.over:
		}
	})
}

// catchUp waits until what was asked of [queue.do] before has been tried.
func (q *queue) catchUp(ctx context.Context) {
	caught := make(chan struct{})
	if !q.do(func(context.Context) { close(caught) }) {
		return
	}
	select {
	case <-caught:
	case <-ctx.Done():
	}
}

// work works off what there is.
func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.todo) == 0 {
			q.todo, q.running = nil, false
			q.mu.Unlock()
			return
		}
		next := q.todo[0]
		q.todo = q.todo[1:]
		q.mu.Unlock()
		ctx, cancel := q.life()
		next(ctx)
		cancel()
	}
}

// close takes no more work, and waits until what there is has been done.
func (q *queue) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.over)
	}
	q.mu.Unlock()
	q.wg.Wait()
}
