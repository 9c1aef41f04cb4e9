package wire

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"
)

func TestQueueDropsOldestPackets(t *testing.T) {
	q := NewQueue[Event]()
	for i := range MaxPackets + 5 {
		q.Put(Packet{Data: []byte{byte(i)}})
		if i == 2 {
			if err := q.Post(ListenStop{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	items, dropped := q.Take(nil)
	if dropped != 5 || len(items) != MaxPackets+1 {
		t.Fatalf("%d items, %d dropped", len(items), dropped)
	}
	if _, ok := items[0].Event.(ListenStop); !ok || items[0].IsPacket {
		t.Errorf("the event did not survive in its place: %+v", items[0])
	}
	for i, it := range items[1:] {
		if !it.IsPacket || it.Event != nil || it.Packet.Data[0] != byte(i+5) {
			t.Errorf("packet %d: %+v", i, it)
		}
	}
	if items, dropped = q.Take(items); len(items) != 0 || dropped != 0 || !q.Empty() {
		t.Errorf("left: %d items, %d dropped", len(items), dropped)
	}
}

func TestQueueRefusesTooManyEvents(t *testing.T) {
	q := NewQueue[Event]()
	for range MaxEvents {
		if err := q.Post(Abort{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Post(Abort{}); !errors.Is(err, ErrOverrun) {
		t.Errorf("err = %v", err)
	}
	q.Put(Packet{})
	if items, dropped := q.Take(nil); len(items) != MaxEvents+1 || dropped != 0 {
		t.Errorf("%d items, %d dropped", len(items), dropped)
	}
}

// The caller's memory may change at once; what was taken may not until it is
// given back.
func TestQueueCopiesPackets(t *testing.T) {
	q := NewQueue[Event]()
	data := []byte{1, 2, 3}
	at := time.Now().Add(-time.Hour)
	q.Put(Packet{Data: data, At: at, Stamp: 7})
	clear(data)
	first, _ := q.Take(nil)
	q.Put(Packet{Data: []byte{9}})
	if p := first[0].Packet; !bytes.Equal(p.Data, []byte{1, 2, 3}) || p.At != at || p.Stamp != 7 {
		t.Errorf("%+v", p)
	}
	second, _ := q.Take(first)
	if p := second[0].Packet; !bytes.Equal(p.Data, []byte{9}) || p.At.IsZero() || p.Stamp != 0 {
		t.Errorf("%+v", p)
	}
}

func TestQueueReusesMemory(t *testing.T) {
	q := NewQueue[Event]()
	data := make([]byte, 120)
	var items []Item[Event]
	round := func(packets int) {
		for range packets {
			q.Put(Packet{Data: data, At: time.Unix(1, 0)})
		}
		items, _ = q.Take(items)
	}
	round(1)
	round(1)
	if n := testing.AllocsPerRun(100, func() { round(1) }); n > 0 {
		t.Errorf("%v allocations for a packet", n)
	}
	round(3 * MaxPackets)
	round(1)
	round(1)
	if cap(items) > keptSlots || cap(q.items) > keptSlots {
		t.Errorf("%d and %d places are kept after a burst", cap(items), cap(q.items))
	}
}

func TestQueueConcurrentUse(t *testing.T) {
	q := NewQueue[int]()
	const writers, each = 4, 100
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range each {
				if i%2 == 0 {
					q.Put(Packet{Data: []byte{byte(i)}})
				} else if err := q.Post(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	var items []Item[int]
	packets, events, lost := 0, 0, 0
	for over := false; !over; {
		select {
		case <-q.Ready():
		case <-done:
			over = true
		}
		var dropped int
		items, dropped = q.Take(items)
		lost += dropped
		for _, it := range items {
			if it.IsPacket {
				packets++
			} else {
				events++
			}
		}
	}
	if events != writers*each/2 || packets+lost != writers*each/2 {
		t.Errorf("%d events, %d packets, %d dropped", events, packets, lost)
	}
}
