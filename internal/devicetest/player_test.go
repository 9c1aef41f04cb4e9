package devicetest

import (
	"testing"
	"time"
)

// The model clock plays each packet right after the one before it.
func TestPlayerClock(t *testing.T) {
	base := time.Unix(1000, 0)
	at := func(n int) time.Time { return base.Add(time.Duration(n) * ms) }
	p := player{limit: 3}
	steps := []struct {
		now, from int
		ok        bool
		waiting   int
	}{
		{0, 0, true, 0},       // plays at once
		{0, 60, true, 1},      // behind it
		{10, 120, true, 2},    //
		{20, 180, true, 3},    // the queue is full now
		{30, 0, false, 3},     // no room
		{60, 240, true, 3},    // one has begun, so there is room
		{1000, 1000, true, 0}, // after silence at once again
	}
	for i, s := range steps {
		from, ok := p.accept(at(s.now), 60*ms, []int16{int16(i)}, nil)
		if ok != s.ok || (ok && !from.Equal(at(s.from))) {
			t.Errorf("step %d: from %s, %v", i, from.Sub(base), ok)
		}
		if got := p.waiting(at(s.now)); got != s.waiting {
			t.Errorf("step %d: %d wait, want %d", i, got, s.waiting)
		}
	}
}

func TestPlayerFlush(t *testing.T) {
	base := time.Unix(1000, 0)
	r := &Reply{}
	p := player{limit: 10}
	for i := range 4 {
		p.accept(base, 60*ms, []int16{int16(i)}, r)
	}
	if n := p.flush(base.Add(70 * ms)); n != 2 {
		t.Errorf("flushed %d, want 2", n)
	}
	if got := p.ends.Sub(base); got != 120*ms {
		t.Errorf("what plays ends at %s, want 120ms", got)
	}
	if pcm := p.take(r); len(pcm) != 2 || pcm[1] != 1 {
		t.Errorf("played %v", pcm)
	}
	p.trim(base.Add(time.Second))
	if len(p.queue) != 0 {
		t.Errorf("%d packets stay", len(p.queue))
	}
}

func TestPlayerDropsOldest(t *testing.T) {
	base := time.Unix(1000, 0)
	r := &Reply{}
	p := player{limit: 2, dropOldest: true}
	for i := range 4 { // 0 plays, 1 and 2 wait, 3 pushes 1 out
		if _, ok := p.accept(base, 60*ms, []int16{int16(i)}, r); ok != (i < 3) {
			t.Errorf("packet %d: %v", i, ok)
		}
	}
	if pcm := p.take(r); len(pcm) != 3 || pcm[1] != 2 || pcm[2] != 3 {
		t.Errorf("played %v", pcm)
	}
	if got := p.ends.Sub(base); got != 180*ms {
		t.Errorf("ends at %s", got)
	}
}
