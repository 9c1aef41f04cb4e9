package speak

import (
	"context"
	"sync"
)

// queue holds the segments that wait to be spoken. Its methods may be called at
// the same time, but not put after close.
type queue struct {
	segments chan *Segment // closed by close

	mu     sync.Mutex
	unsaid int // segments that were given and are not cut into frames yet
	closed bool
}

func newQueue() queue { return queue{segments: make(chan *Segment, mostSegments)} }

// put adds a segment; it waits while many are waiting.
func (q *queue) put(ctx context.Context, u Segment) error {
	q.count(1)
	select {
	case q.segments <- &u:
		return nil
	case <-ctx.Done():
		q.count(-1)
		return context.Cause(ctx)
	}
}

// putAlone adds a segment if there is no other and may be more.
func (q *queue) putAlone(u Segment) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.unsaid > 0 || q.closed {
		return false
	}
	q.unsaid++
	q.segments <- &u // there is room: it is empty
	return true
}

// count notes that there are so many segments more that are not cut yet.
func (q *queue) count(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsaid += n
}

// empty reports whether all that was given was cut into frames.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unsaid == 0
}

// close says that there are no more segments.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	close(q.segments)
}
