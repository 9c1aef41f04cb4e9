package audio

import (
	"slices"
	"testing"
	"time"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		f    Format
		want int
	}{
		{Recognition, 960}, {Reply, 1440}, {Format{8000, 2500 * time.Microsecond}, 20}, {Format{48000, 120 * ms}, 5760}, {Format{}, 0},
	} {
		if got := c.f.Samples(); got != c.want {
			t.Errorf("%v has %d samples, want %d", c.f, got, c.want)
		}
		if got := c.f.Duration(c.want); got != c.f.Frame {
			t.Errorf("%d samples of %v last %v", c.want, c.f, got)
		}
	}
	if got := (Format{Rate: -1}).Duration(100); got != 0 {
		t.Errorf("100 samples at a negative rate last %v", got)
	}
}

// TestGrow: however long an utterance becomes, no more than four times its size is
// taken from memory for it in all, and what is there stays.
func TestGrow(t *testing.T) {
	for _, seconds := range []int{1, 5, 60} {
		var pcm []int16
		taken := 0
		for i := range seconds * 1000 / 60 {
			before := cap(pcm)
			pcm = append(Grow(pcm, 960), slices.Repeat([]int16{int16(i)}, 960)...)
			if cap(pcm) != before {
				taken += cap(pcm)
			}
		}
		if limit := 4*len(pcm) + Recognition.Rate; taken > limit {
			t.Errorf("%d s: %d samples taken, limit %d", seconds, taken, limit)
		}
		for i := range pcm {
			if pcm[i] != int16(i/960) {
				t.Fatalf("%d s: sample %d is %d", seconds, i, pcm[i])
			}
		}
	}
}
