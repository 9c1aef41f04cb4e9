package bench

import (
	"math"
	"slices"
	"time"
)

// Numbers describe a sample: its quantiles by nearest rank, in the unit of the figure that they belong to.
type Numbers struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// describe returns the percentiles of a sample; nil for an empty one.
func describe(sample []float64) *Numbers {
	if len(sample) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(sample))
	return &Numbers{P50: quantile(s, 50), P95: quantile(s, 95), P99: quantile(s, 99), Min: s[0], Max: s[len(s)-1]}
}

// quantile is the smallest value of a sorted sample that percent of 100 of all values do not exceed (nearest rank).
func quantile(sorted []float64, percent int) float64 {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// sampleLimit is the number of measurements that are kept of a sample.
const sampleLimit = 1000

// thin is a sample, or evenly chosen parts of it in their order if it is long, rounded to a thousandth.
func thin(sample []float64) []float64 {
	n := min(len(sample), sampleLimit)
	if n == 0 {
		return nil
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Round(1000*sample[i*len(sample)/n]) / 1000
	}
	return out
}

func median(sample []float64) float64 {
	if len(sample) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(sample))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func ms(sample []time.Duration) []float64 { return mapped(sample, milliseconds) }

func mapped[T, U any](all []T, f func(T) U) []U {
	out := make([]U, len(all))
	for i, v := range all {
		out[i] = f(v)
	}
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
