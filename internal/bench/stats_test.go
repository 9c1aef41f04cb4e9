package bench

import (
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	if describe(nil) != nil {
		t.Error("an empty sample has numbers")
	}
	one := describe([]float64{7})
	if *one != (Numbers{7, 7, 7, 7, 7}) {
		t.Errorf("one value: %+v", *one)
	}
	var sample []float64
	for i := 200; i >= 1; i-- {
		sample = append(sample, float64(i))
	}
	// Nearest rank: the smallest value that so many percent do not exceed.
	if got := describe(sample); *got != (Numbers{P50: 100, P95: 190, P99: 198, Min: 1, Max: 200}) {
		t.Errorf("1 to 200: %+v", *got)
	}
	if sample[0] != 200 {
		t.Error("the sample was sorted in place")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		sample []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.sample); got != c.want {
			t.Errorf("median of %v: %g, want %g", c.sample, got, c.want)
		}
	}
}

func TestMilliseconds(t *testing.T) {
	if got := ms([]time.Duration{1500 * time.Microsecond, -time.Second}); got[0] != 1.5 || got[1] != -1000 {
		t.Errorf("%v", got)
	}
}
