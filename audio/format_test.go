package audio

import (
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
