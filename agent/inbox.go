package agent

import (
	"errors"
	"sync"

	"xiaozhi/internal/wire"
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
	items   []posted
	frames  int
	dropped int           // frames, since the last take
	notify  chan struct{} // size 1: something is waiting
}

// posted is an event, or a frame: one in an interface would cost an allocation.
type posted struct {
	ev     any // a wire.Event, or a command to the ears; nil: it is a frame
	frame  wire.Frame
	pooled bool // frame.Packet is from the conversation's packets
}

func newInbox() *inbox { return &inbox{notify: make(chan struct{}, 1)} }

// post queues an event.
func (b *inbox) post(ev any) error {
	if f, ok := ev.(wire.Frame); ok {
		b.postFrame(f, false)
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items)-b.frames >= maxEvents {
		return ErrOverrun
	}
	b.put(posted{ev: ev})
	return nil
}

// postFrame queues a frame, dropping the oldest that waits when there are too many.
func (b *inbox) postFrame(f wire.Frame, pooled bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frames >= maxFrames {
		b.dropOldestFrame()
	}
	b.frames++
	b.put(posted{frame: f, pooled: pooled})
}

// put queues an item and tells the reader. The caller holds mu.
func (b *inbox) put(it posted) {
	b.items = append(b.items, it)
	select {
	case b.notify <- struct{}{}:
	default:
	}
}

func (b *inbox) dropOldestFrame() {
	for i, it := range b.items {
		if it.ev == nil {
			b.items = append(b.items[:i], b.items[i+1:]...)
			b.frames--
			b.dropped++
			return
		}
	}
}

// take empties the inbox into buf and says how many frames were dropped since
// the last take.
func (b *inbox) take(buf []posted) (items []posted, dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	items = append(buf[:0], b.items...)
	clear(b.items)
	b.items = b.items[:0]
	dropped, b.dropped, b.frames = b.dropped, 0, 0
	return items, dropped
}

// empty reports whether nothing waits.
func (b *inbox) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}

// packets are the buffers of microphone frames, which are used again. Whoever
// has done with a frame puts its buffer back; one that is lost is not missed.
type packets struct{ spare chan []byte }

// packetBytes is what a packet of speech takes, with room to spare.
const packetBytes = 256

func newPackets() packets { return packets{make(chan []byte, 8)} }

// copyOf is a copy of a packet, in a buffer that was used before if there is one.
func (p packets) copyOf(packet []byte) []byte {
	var buf []byte
	select {
	case buf = <-p.spare:
	default:
		buf = make([]byte, 0, max(packetBytes, len(packet)))
	}
	return append(buf[:0], packet...)
}

// done takes the buffer of a frame back, if it is one of ours.
func (p packets) done(it posted) {
	if !it.pooled {
		return
	}
	select {
	case p.spare <- it.frame.Packet:
	default:
	}
}
