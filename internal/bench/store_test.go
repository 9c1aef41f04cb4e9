package bench

import (
	"strings"
	"testing"
)

// TestOnAndOff: two servers are the same as long as they differ by no more than runs of one of them do.
func TestOnAndOff(t *testing.T) {
	side := func(base, grown float64, latency ...float64) []Figure {
		return []Figure{
			single("M18", "base process", "MiB", 1, base).untimed(), sampled("M18", "latency", latency), single("M18", "growth of the database", "KiB", 1, grown).untimed(),
		}
	}
	verdicts := func(on, off [][]Figure) string {
		var all []string
		for _, f := range onAndOff(on, off) {
			if f = f.judged(); f.Verdict != NoGoal {
				all = append(all, string(f.Verdict))
			}
		}
		return strings.Join(all, " ")
	}
	slow := []float64{20, 21, 22, 20, 21, 22}
	quick := []float64{10, 11, 12, 10, 11, 12}
	for name, test := range map[string]struct {
		on, off [][]Figure
		want    string // base process, p50, p99, growth
	}{
		"the same":          {[][]Figure{side(50, 9, quick...), side(51, 9, quick...)}, [][]Figure{side(48, 0, quick...), side(48, 0, quick...)}, "pass pass pass pass"},
		"slower":            {[][]Figure{side(50, 9, slow...), side(50, 9, slow...)}, [][]Figure{side(48, 0, quick...), side(48, 0, quick...)}, "pass miss miss pass"},
		"a noisy machine":   {[][]Figure{side(50, 9, slow...), side(50, 9, quick...)}, [][]Figure{side(48, 0, quick...), side(48, 0, slow...)}, "pass pass pass pass"},
		"large, and silent": {[][]Figure{side(60, 0, quick...)}, [][]Figure{side(48, 0, quick...)}, "miss pass pass miss"},
		"nothing heard":     {[][]Figure{side(50, 9)}, [][]Figure{side(48, 0)}, "pass not measured not measured not measured not measured pass"},
	} {
		if got := verdicts(test.on, test.off); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := onAndOff([][]Figure{side(50, 9, quick...)}, nil); len(got) != 0 {
		t.Errorf("compared with nothing: %+v", got)
	}
}
