package speak

import "time"

const (
	gridSlots = 12 // of a frame's length: 5 ms each at 60 ms
	gridReach = 5  // so many slots a reply may be moved, either way
	gridFull  = 4  // replies of a slot, while others are empty
)

// grid gives the replies that go on at the same time slots in the length of a frame. Those that are due in the same instant
// need one thread to wake; where many of them are, the last one is late. So slots are filled one after the other, and then
// evenly. Its owner guards it.
type grid struct {
	start time.Time // of the first slot
	slots [gridSlots]slot
}

// slot is a part of a frame's length, in which all replies are due in the same instant.
type slot struct {
	used int
	at   time.Duration // that instant, after the start of the grid; of the first reply
}

// take books a slot for a reply whose frames of that length are due around due, and returns it and by how much they are moved.
func (g *grid) take(due time.Time, frame time.Duration) (s *slot, move time.Duration) {
	if g.start.IsZero() {
		g.start = due
	}
	at := due.Sub(g.start) % frame
	if at < 0 {
		at += frame
	}
	own := min(int(at*gridSlots/frame), gridSlots-1)
	best := 0
	for _, offset := range nearestFirst() {
		if g.at(own+offset).crowd() < g.at(own+best).crowd() {
			best = offset
		}
	}
	s = g.at(own + best)
	switch {
	case s.used > 0:
		move = (s.at-at+frame+frame/2)%frame - frame/2
	case best == 0:
		s.at = at
	default:
		move = time.Duration(best) * frame / gridSlots
		s.at = (at + move + frame) % frame
	}
	s.used++
	return s, move
}

// taken counts the replies that have a slot.
func (g *grid) taken() (n int) {
	for i := range g.slots {
		n += g.slots[i].used
	}
	return n
}

func (g *grid) at(slot int) *slot { return &g.slots[(slot+gridSlots)%gridSlots] }

// crowd orders slots, the best first: nearly full ones, empty ones, full ones.
func (s *slot) crowd() int {
	if s.used < gridFull {
		return -s.used
	}
	return s.used
}

// nearestFirst are the slots in reach, the nearest first.
func nearestFirst() []int {
	out := make([]int, 0, 2*gridReach)
	for i := 1; i <= gridReach; i++ {
		out = append(out, i, -i)
	}
	return out
}
