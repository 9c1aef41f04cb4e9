package speak

import (
	"sync"
	"time"
)

const (
	staggerSlots = 12 // of a frame's length: 5 ms each at 60 ms
	staggerReach = 5  // so many slots a reply may be moved, either way
)

// Stagger spreads the frames of replies that go on at the same time over the
// length of a frame: where many of them are due in the same instant, the last one
// is late. Its methods may be called at the same time; its zero value is ready.
type Stagger struct {
	mu   sync.Mutex
	used [staggerSlots]int
}

// place is a slot that a reply has taken. A nil one is none.
type place struct {
	of   *Stagger
	slot int
}

// take books a place for a reply whose frames of that length are due around due,
// and returns by how much they are moved: not at all, where the place is free. A
// nil Stagger moves nothing.
func (s *Stagger) take(due time.Time, frame time.Duration) (*place, time.Duration) {
	if s == nil {
		return nil, 0
	}
	width := frame / staggerSlots
	at := time.Duration(due.UnixNano()) % frame
	own := min(int(at/width), staggerSlots-1)
	s.mu.Lock()
	defer s.mu.Unlock()
	best := 0
	for _, offset := range nearestFirst() {
		if s.used[wrap(own+offset)] < s.used[wrap(own+best)] {
			best = offset
		}
	}
	p := &place{s, wrap(own + best)}
	s.used[p.slot]++
	if best == 0 {
		return p, 0
	}
	return p, time.Duration(own+best)*width + width/2 - at
}

// release gives the place back.
func (p *place) release() {
	if p == nil {
		return
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.used[p.slot]--
}

func wrap(slot int) int { return (slot + staggerSlots) % staggerSlots }

// nearestFirst are the slots in reach, the nearest first.
func nearestFirst() []int {
	out := make([]int, 0, 2*staggerReach)
	for i := 1; i <= staggerReach; i++ {
		out = append(out, i, -i)
	}
	return out
}
