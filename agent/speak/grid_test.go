package speak

import (
	"testing"
	"time"
)

// TestGrid: a few replies are due together, so that one thread sends them; of many, which begin in the same instant, none
// waits for more than its share of the others; and each may be moved only so far.
func TestGrid(t *testing.T) {
	const frame = 60 * time.Millisecond
	var g grid
	due := time.Unix(1000, 0)
	var taken []*slot
	counts := map[time.Duration]int{}
	for i := range 66 {
		offset := time.Duration(i%3) * time.Millisecond
		s, move := g.take(due.Add(time.Duration(i)*frame+offset), frame)
		if move < -28*time.Millisecond || move > 28*time.Millisecond {
			t.Errorf("moved by %v", move)
		}
		taken = append(taken, s)
		counts[(offset+move+frame)%frame]++
		if i == gridFull-1 && len(counts) != 1 {
			t.Errorf("%d replies are due at %v", i+1, counts)
		}
	}
	for at, n := range counts {
		if n > 6 {
			t.Errorf("%d replies at %v", n, at)
		}
	}
	if len(counts) != 2*gridReach+1 {
		t.Errorf("spread over %d slots", len(counts))
	}
	for _, s := range taken {
		s.used--
	}
	if _, move := g.take(due.Add(frame*2/3), frame); move != 0 {
		t.Errorf("the only one is moved by %v", move)
	}
}
