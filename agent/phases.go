package agent

import (
	"sync"
	"time"
)

const (
	phaseSlots = 12 // of a frame's length: 5 ms each at 60 ms
	phaseReach = 5  // so many slots a reply may be moved, either way
)

// phases spreads the frames of replies that go on at the same time over the
// length of a frame: where many of them are due in the same instant, the last
// one is late. Its methods may be called at the same time; its zero value is ready.
type phases struct {
	mu   sync.Mutex
	used [phaseSlots]int
}

// take books a place for a reply whose frames of that length are due around due,
// and returns by how much they are moved: not at all, where the place is free.
// The caller gives the slot back.
func (p *phases) take(due time.Time, frame time.Duration) (slot int, move time.Duration) {
	width := frame / phaseSlots
	at := time.Duration(due.UnixNano()) % frame
	own := min(int(at/width), phaseSlots-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	best := 0
	for _, offset := range nearestFirst() {
		if p.used[wrap(own+offset)] < p.used[wrap(own+best)] {
			best = offset
		}
	}
	slot = wrap(own + best)
	p.used[slot]++
	if best == 0 {
		return slot, 0
	}
	return slot, time.Duration(own+best)*width + width/2 - at
}

func (p *phases) giveBack(slot int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[slot]--
}

func wrap(slot int) int { return (slot + phaseSlots) % phaseSlots }

// nearestFirst are the slots in reach, the nearest first.
func nearestFirst() []int {
	out := make([]int, 0, 2*phaseReach)
	for i := 1; i <= phaseReach; i++ {
		out = append(out, i, -i)
	}
	return out
}
