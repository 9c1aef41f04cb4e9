package agent

import (
	"errors"
	"sync"
)

// Limits of the inbox.
const (
	maxFrames = 64  // audio frames waiting (3.8 s of 60 ms frames); then the oldest is dropped
	maxEvents = 512 // other events waiting; then the connection ends
)

// ErrOverrun is returned by Post when a device sends events faster than any
// device can mean them.
var ErrOverrun = errors.New("too many events waiting")

// inbox is the ordered queue from the socket's reader to the conversation. It
// never makes the reader wait. It has one reader and any number of writers.
type inbox struct {
	mu      sync.Mutex
	items   []Event
	frames  int
	dropped int           // frames, since the last take
	notify  chan struct{} // size 1: something is waiting
}

func newInbox() *inbox { return &inbox{notify: make(chan struct{}, 1)} }

// post queues an event, dropping the oldest waiting frame when there are too many.
func (b *inbox) post(ev Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := ev.(Frame); ok {
		if b.frames >= maxFrames {
			b.dropOldestFrame()
		}
		b.frames++
	} else if len(b.items)-b.frames >= maxEvents {
		return ErrOverrun
	}
	b.items = append(b.items, ev)
	select {
	case b.notify <- struct{}{}:
	default:
	}
	return nil
}

func (b *inbox) dropOldestFrame() {
	for i, it := range b.items {
		if _, ok := it.(Frame); ok {
			b.items = append(b.items[:i], b.items[i+1:]...)
			b.frames--
			b.dropped++
			return
		}
	}
}

// take empties the inbox into buf and says how many frames were dropped since
// the last take.
func (b *inbox) take(buf []Event) (events []Event, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events = append(buf[:0], b.items...)
	clear(b.items)
	b.items = b.items[:0]
	dropped, b.dropped, b.frames = b.dropped, 0, 0
	return events, dropped
}

// empty reports whether nothing waits.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}
