package agent

import (
	"testing"
	"time"
)

// TestPhases: sixty replies that begin in the same instant are spread evenly, as
// far as each may be moved, and a single one is not moved.
func TestPhases(t *testing.T) {
	const frame = 60 * time.Millisecond
	var p phases
	due := time.Unix(1000, 0).Add(23 * time.Millisecond)
	var slots []int
	counts := map[time.Duration]int{}
	for i := range 66 {
		slot, move := p.take(due.Add(time.Duration(i)*frame), frame)
		if i == 0 && move != 0 {
			t.Errorf("the first is moved by %v", move)
		}
		if move < -28*time.Millisecond || move > 28*time.Millisecond {
			t.Errorf("moved by %v", move)
		}
		slots = append(slots, slot)
		counts[(23*time.Millisecond+move+frame)%frame/(5*time.Millisecond)]++
	}
	for at, n := range counts {
		if n > 6 {
			t.Errorf("%d replies at %d ms", n, at*5)
		}
	}
	if len(counts) != 2*phaseReach+1 {
		t.Errorf("spread over %d places", len(counts))
	}
	for _, slot := range slots {
		p.giveBack(slot)
	}
	if p.used != [phaseSlots]int{} {
		t.Errorf("not given back: %v", p.used)
	}
}
