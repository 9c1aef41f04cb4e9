package wire

import (
	"errors"
	"sync"
	"time"
)

// Limits of a [Queue].
const (
	// MaxPackets is how many packets wait (3.8 s of 60 ms frames); then the
	// oldest is dropped.
	MaxPackets = 64
	// MaxEvents is how many events wait; then [Queue.Post] fails.
	MaxEvents = 512
)

// ErrOverrun is returned by [Queue.Post] when too many events wait. No device
// means so many: its connection ends.
var ErrOverrun = errors.New("too many events waiting")

// Packet is one Opus packet from a microphone.
type Packet struct {
	Data []byte
	At   time.Time // arrival; zero: when it is queued
	// Stamp names the packet that the device was playing when this one was
	// recorded, by the stamp that [Outbox].Audio gave it; 0: it does not say.
	Stamp uint32
}

// Item is one entry of a [Queue]: an event of type E, or a packet.
type Item[E any] struct {
	Event    E
	Packet   Packet
	IsPacket bool
}

// Queue holds events and packets in the order in which they came, from the
// goroutines that put them in to the one that takes them out. A full queue drops
// its oldest packets and refuses events; putting in never waits. Packets are
// copied into memory that the queue uses again.
//
// # Concurrency
//
// Put, Post and Empty may be called at the same time as all else; Take by one
// goroutine at a time.
type Queue[E any] struct {
	mu      sync.Mutex
	items   []Item[E]
	packets int           // among items
	dropped int           // packets, since the last Take
	ready   chan struct{} // size 1: something waits
}

// NewQueue makes an empty queue.
func NewQueue[E any]() *Queue[E] { return &Queue[E]{ready: make(chan struct{}, 1)} }

// Ready gives a token after something was put in; one token may stand for many
// entries.
func (q *Queue[E]) Ready() <-chan struct{} { return q.ready }

// Post queues an event, or returns [ErrOverrun].
func (q *Queue[E]) Post(ev E) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items)-q.packets >= MaxEvents {
		return ErrOverrun
	}
	q.slot().Event = ev
	q.wake()
	return nil
}

// Put queues a copy of a packet. If [MaxPackets] wait, the oldest is dropped.
func (q *Queue[E]) Put(p Packet) {
	if p.At.IsZero() {
		p.At = time.Now()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.packets >= MaxPackets {
		q.dropOldest()
	}
	q.packets++
	it := q.slot()
	it.IsPacket = true
	it.Packet = Packet{Data: append(it.Packet.Data[:0], p.Data...), At: p.At, Stamp: p.Stamp}
	q.wake()
}

// slot appends an entry, with the memory of the packet that was there before.
// The caller holds mu.
func (q *Queue[E]) slot() *Item[E] {
	if n := len(q.items); n < cap(q.items) {
		q.items = q.items[:n+1]
	} else {
		q.items = append(q.items, Item[E]{})
	}
	return &q.items[len(q.items)-1]
}

// dropOldest removes the oldest packet; its memory goes to the end, to be used
// by the next. The caller holds mu.
func (q *Queue[E]) dropOldest() {
	for i := range q.items {
		if !q.items[i].IsPacket {
			continue
		}
		data := q.items[i].Packet.Data
		n := copy(q.items[i:], q.items[i+1:]) + i
		q.items[n] = Item[E]{Packet: Packet{Data: data}}
		q.items = q.items[:n]
		q.packets--
		q.dropped++
		return
	}
}

// wake gives a token. The caller holds mu.
func (q *Queue[E]) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// keptSlots is how many entries keep their memory while a queue is empty.
const keptSlots = 8

// Take empties the queue and gives its entries, and how many packets were
// dropped since the last Take. They are good until done is given to the next
// Take: then their memory is used for what comes after that. Nil starts afresh.
func (q *Queue[E]) Take(done []Item[E]) (items []Item[E], dropped int) {
	done = done[:cap(done)]
	done = done[:min(len(done), keptSlots):min(len(done), keptSlots)]
	for i := range done {
		done[i] = Item[E]{Packet: Packet{Data: done[i].Packet.Data[:0]}}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	items, q.items = q.items, done[:0]
	dropped, q.dropped, q.packets = q.dropped, 0, 0
	return items, dropped
}

// Empty reports whether nothing waits.
func (q *Queue[E]) Empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) == 0
}
