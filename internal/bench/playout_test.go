package bench

import (
	"slices"
	"testing"
	"time"
)

const packet = 60 * time.Millisecond

// at are moments so many milliseconds after a fixed one.
func at(offsets ...int) []time.Time {
	zero := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	out := make([]time.Time, len(offsets))
	for i, o := range offsets {
		out[i] = zero.Add(time.Duration(o) * time.Millisecond)
	}
	return out
}

func durations(offsets ...int) []time.Duration {
	var out []time.Duration
	for _, o := range offsets {
		out = append(out, time.Duration(o)*time.Millisecond)
	}
	return out
}

func TestPlay(t *testing.T) {
	for _, c := range []struct {
		name          string
		arrivals      []int
		slack, jitter []int
		under, over   int
		ends          int
	}{
		{name: "nothing"},
		// Four at once, then one each 60 ms: packet i plays at 60 i, packets from 300 ms on count.
		{
			name:     "paced",
			arrivals: []int{0, 0, 0, 0, 30, 90, 150, 210, 270, 330, 390},
			slack:    []int{210, 210}, jitter: []int{0, 0}, ends: 660,
		},
		{
			name:     "one late",
			arrivals: []int{0, 0, 0, 0, 30, 90, 150, 210, 270, 340, 390},
			slack:    []int{200, 210}, jitter: []int{10, 10}, ends: 660,
		},
		// The speaker falls silent at 120 and hears on at 500 and again at 799; the clock starts anew there,
		// and the lead may be built up again for 300 ms.
		{
			name:     "underrun",
			arrivals: []int{0, 0, 500, 500, 560, 799, 810, 860},
			slack:    []int{}, jitter: []int{}, under: 2, ends: 979,
		},
		// Of fifty at once, 41 find room behind the first (which plays): 40 wait.
		{name: "burst", arrivals: make([]int, 50), over: 9, ends: 41 * 60},
	} {
		p := play(at(c.arrivals...), packet)
		if !slices.Equal(p.slack, durations(c.slack...)) || !slices.Equal(p.jitter, durations(c.jitter...)) {
			t.Errorf("%s: slack %v, jitter %v", c.name, p.slack, p.jitter)
		}
		if p.underruns != c.under || p.overflows != c.over {
			t.Errorf("%s: %d underruns, %d overflows", c.name, p.underruns, p.overflows)
		}
		if len(c.arrivals) > 0 && !p.ends.Equal(at(c.ends)[0]) {
			t.Errorf("%s: it ends after %v", c.name, p.ends.Sub(at(0)[0]))
		}
	}
}

func TestSeams(t *testing.T) {
	// Three sentences of two packets. The second comes in time, the third 80 ms
	// after the speaker has fallen silent at 240.
	arrivals := at(0, 0, 60, 120, 320, 320)
	sentences := at(-1, 59, 319)
	if got := seams(arrivals, sentences, packet); !slices.Equal(got, durations(0, 80)) {
		t.Errorf("seams %v", got)
	}
	// A subtitle in the same instant as its first packet was read before it.
	if got := seams(at(0, 60), at(0, 60), packet); !slices.Equal(got, durations(0)) {
		t.Errorf("same instant: %v", got)
	}
	if got := seams(arrivals, at(-1), packet); len(got) != 0 {
		t.Errorf("one sentence: %v", got)
	}
	if got := seams(nil, sentences, packet); got != nil {
		t.Errorf("no sound: %v", got)
	}
}

func TestCut(t *testing.T) {
	k := cut{aborted: at(100)[0], stopped: at(104)[0], frames: at(40, 99, 102, 103, 110, 170)}
	if got := k.last(); got != 3*time.Millisecond {
		t.Errorf("last frame %v after the abort", got)
	}
	if got := k.after(); got != 2 {
		t.Errorf("%d frames after the stop, want 2", got)
	}
	if got := (cut{aborted: at(100)[0], stopped: at(104)[0], frames: at(40, 99)}).last(); got != 0 {
		t.Errorf("no frame came after the abort, but %v", got)
	}
}

func TestApart(t *testing.T) {
	if got := apart(at(0, 60, 125, 180), packet); !slices.Equal(got, durations(0, 5, 5)) {
		t.Errorf("%v", got)
	}
	if got := apart(at(0), packet); got != nil {
		t.Errorf("one packet: %v", got)
	}
}
