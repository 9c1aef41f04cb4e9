package bench

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// spreadAround are n values about a middle, always the same.
func spreadAround(middle float64, n int) []float64 {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	out := make([]float64, n)
	for i := range out {
		out[i] = middle * (0.9 + 0.2*random.Float64())
	}
	return out
}

func TestCompare(t *testing.T) {
	report := func(server string, latency, memory float64, void bool) *Report {
		f := sampled("M1", "latency", spreadAround(latency, 200))
		f.Control.Void = void
		return &Report{Server: server, Figures: []Figure{f, single("M12", "memory", "KiB", 1, memory).untimed()}}
	}
	var out strings.Builder
	err := Compare(&out, []*Report{report("ours", 4, 50, false), report("theirs", 12, 200, false), report("theirs", 900, 200, true), report("ours", 4, 50, false)})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if latency := strings.Join(strings.Fields(lines[5]), " "); !strings.HasPrefix(latency, "M1 latency ms 400 200 ") || !strings.Contains(latency, " 3.00 (") || !strings.HasSuffix(latency, " 1 void") {
		t.Errorf("latency: %s", latency)
	}
	if memory := strings.Join(strings.Fields(lines[6]), " "); memory != "M12 memory KiB 2 2 50 200 4" {
		t.Errorf("memory: %s", memory)
	}
	one, two, three := report("a", 1, 1, false), report("b", 1, 1, false), report("c", 1, 1, false)
	for name, bad := range map[string][]*Report{"one": {one}, "the same server": {one, one}, "three": {one, two, three}} {
		if err := Compare(&out, bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The interval holds the true ratio and is narrower with more to go by.
func TestRatio(t *testing.T) {
	ratio, low, high := ratioOf(spreadAround(10, 50), spreadAround(20, 50), 50)
	if low > ratio || high < ratio || low > 2 || high < 2 || high-low > 0.5 {
		t.Errorf("%g (%g..%g)", ratio, low, high)
	}
	_, low2, high2 := ratioOf(spreadAround(10, 1000), spreadAround(20, 1000), 50)
	if high2-low2 >= high-low {
		t.Errorf("with 50: %g..%g, with 1000: %g..%g", low, high, low2, high2)
	}
	if got := ratioText([]float64{0, 1}, []float64{1, 2}, 50, true); got != "-" {
		t.Errorf("over 0: %s", got)
	}
}

func TestThin(t *testing.T) {
	long := make([]float64, 2500)
	for i := range long {
		long[i] = float64(i) + 0.00049
	}
	if got := thin(long); len(got) != sampleLimit || got[0] != 0 || got[999] != 2497 {
		t.Errorf("%d of %d, the last %g", len(got), len(long), got[len(got)-1])
	}
	if got := thin([]float64{1.23456}); len(got) != 1 || got[0] != 1.235 {
		t.Errorf("%v", got)
	}
}
