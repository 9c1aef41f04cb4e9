package speak

import (
	"testing"
	"time"
)

// TestStagger: sixty replies that begin in the same instant are spread evenly, as
// far as each may be moved, and a single one is not moved.
func TestStagger(t *testing.T) {
	const frame = 60 * time.Millisecond
	var p Stagger
	due := time.Unix(1000, 0).Add(23 * time.Millisecond)
	var places []*place
	counts := map[time.Duration]int{}
	for i := range 66 {
		at, move := p.take(due.Add(time.Duration(i)*frame), frame)
		if i == 0 && move != 0 {
			t.Errorf("the first is moved by %v", move)
		}
		if move < -28*time.Millisecond || move > 28*time.Millisecond {
			t.Errorf("moved by %v", move)
		}
		places = append(places, at)
		counts[(23*time.Millisecond+move+frame)%frame/(5*time.Millisecond)]++
	}
	for at, n := range counts {
		if n > 6 {
			t.Errorf("%d replies at %d ms", n, at*5)
		}
	}
	if len(counts) != 2*staggerReach+1 {
		t.Errorf("spread over %d places", len(counts))
	}
	for _, at := range places {
		at.release()
	}
	if p.used != [staggerSlots]int{} {
		t.Errorf("not given back: %v", p.used)
	}
}
