package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Stat names one number of a figure.
type Stat string

// The numbers that goals are set for.
const (
	P50   Stat = "p50"
	P95   Stat = "p95"
	P99   Stat = "p99"
	Min   Stat = "min"
	Max   Stat = "max"
	Value Stat = "value"
)

// Goal is a bound of one number.
type Goal struct {
	Stat    Stat    `json:"stat"`
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least,omitempty"` // the number must not be less; else not more
}

// String writes the goal with its sign, such as p99 ≤ 20.
func (g Goal) String() string {
	sign := "≤"
	if g.AtLeast {
		sign = "≥"
	}
	name := string(g.Stat)
	if g.Stat == Value {
		name = ""
	}
	return strings.TrimSpace(name + " " + sign + " " + number(g.Limit))
}

func (g Goal) met(v float64) bool {
	return v == g.Limit || (v > g.Limit) == g.AtLeast
}

func most(s Stat, limit float64) Goal  { return Goal{Stat: s, Limit: limit} }
func least(s Stat, limit float64) Goal { return Goal{Stat: s, Limit: limit, AtLeast: true} }

// Verdict tells whether a figure meets its goals.
type Verdict string

// The verdicts.
const (
	Pass   Verdict = "pass"
	Miss   Verdict = "miss"
	Void   Verdict = "void" // the control was late: the machine was busy with other things
	NoGoal Verdict = ""     // nothing was promised
	None   Verdict = "not measured"
)

// Figure is one measured thing. It has either Numbers, those of a sample, or a
// Value; neither when nothing could be measured, and then Note says why.
type Figure struct {
	Metric  string   `json:"metric"` // M1 to M18
	What    string   `json:"what"`
	Unit    string   `json:"unit"`
	N       int      `json:"n"` // size of the sample
	Numbers *Numbers `json:"numbers,omitempty"`
	Value   *float64 `json:"value,omitempty"`
	Goals   []Goal   `json:"goals,omitempty"`
	Note    string   `json:"note,omitempty"`
	Untimed bool     `json:"untimed,omitempty"` // a busy machine does not change it: never void
	Control Control  `json:"control"`
	// TimesControl is the p99 of a jitter as a multiple of the load's control; 0 of other figures.
	TimesControl float64 `json:"p99_times_control,omitempty"`
	Verdict      Verdict `json:"verdict"`
	Spread       *Spread `json:"spread,omitempty"` // of several runs
	// Sample holds at most 1000 of the measurements behind Numbers, for Compare.
	Sample []float64 `json:"sample,omitempty"`

	jitter bool
}

// Spread summarises several runs of the same figure.
type Spread struct {
	Runs int     `json:"runs"` // in which the figure was wanted
	Void int     `json:"void"` // runs that were void; they count only if all were
	Low  Numbers `json:"low"`  // least of each number; a value stands in p50
	High Numbers `json:"high"`
}

func sampled(metric, what string, sample []float64, goals ...Goal) Figure {
	return Figure{Metric: metric, What: what, Unit: "ms", N: len(sample), Numbers: describe(sample), Goals: goals, Sample: thin(sample)}
}

func single(metric, what, unit string, n int, v float64, goals ...Goal) Figure {
	return Figure{Metric: metric, What: what, Unit: unit, N: n, Value: &v, Goals: goals}
}

func unmeasured(metric, what, why string) Figure {
	return Figure{Metric: metric, What: what, Note: why}
}

// relative tells a time as a multiple of the encoding of a packet, which takes so many ms. A goal in ms is none of that.
func (f Figure) relative(encode float64) Figure {
	in := map[string]float64{"s": 1000, "ms": 1, "µs": 0.001}[f.Unit] / encode
	if in == 0 || !f.measured() {
		return f
	}
	f.Unit, f.Goals, f.Verdict = "× encode", nil, NoGoal
	f.Note = strings.TrimPrefix(fmt.Sprintf("%s; a packet is encoded in %s ms", f.Note, number(encode)), "; ")
	if f.Value != nil {
		v := *f.Value * in
		f.Value = &v
	}
	if f.Numbers != nil {
		n := *f.Numbers
		for _, s := range []Stat{P50, P95, P99, Min, Max} {
			*n.stat(s) *= in
		}
		f.Numbers = &n
	}
	f.Sample = mapped(f.Sample, func(v float64) float64 { return v * in })
	return f
}

func (f Figure) asJitter() Figure { f.jitter = true; return f }
func (f Figure) untimed() Figure  { f.Untimed = true; return f }
func (f Figure) noted(format string, args ...any) Figure {
	f.Note = fmt.Sprintf(format, args...)
	return f
}

// stat is one number of the figure; false if it has none of that name.
func (f Figure) stat(s Stat) (float64, bool) {
	switch {
	case s == Value && f.Value != nil:
		return *f.Value, true
	case s != Value && f.Numbers != nil:
		return *f.Numbers.stat(s), true
	}
	return 0, false
}

// stat is one of the numbers; that of a value stands in P50.
func (n *Numbers) stat(s Stat) *float64 {
	switch s {
	case P95:
		return &n.P95
	case P99:
		return &n.P99
	case Min:
		return &n.Min
	case Max:
		return &n.Max
	default:
		return &n.P50
	}
}

func (f Figure) judged() Figure {
	if f.jitter && f.Numbers != nil && f.Control.P99 > 0 {
		f.TimesControl = f.Numbers.P99 / f.Control.P99
	}
	switch {
	case !f.measured():
		f.Verdict = None
		return f
	case len(f.Goals) == 0:
		f.Verdict = NoGoal
		return f
	case f.void():
		f.Verdict = Void
		return f
	}
	f.Verdict = Pass
	for _, g := range f.Goals {
		if v, ok := f.stat(g.Stat); !ok || !g.met(v) {
			f.Verdict = Miss
		}
	}
	return f
}

func (f Figure) measured() bool { return f.Numbers != nil || f.Value != nil }

// void reports whether the machine was too busy for the figure.
func (f Figure) void() bool { return f.Control.Void && !f.Untimed }

// combine makes one figure of those of several runs: medians of each number,
// with their spread. Runs that were void are left out unless all were.
func combine(runs []Figure) Figure {
	used := slices.DeleteFunc(slices.Clone(runs), Figure.void)
	spread := &Spread{Runs: len(runs), Void: len(runs) - len(used)}
	if len(used) == 0 {
		used = runs
	}
	if slices.ContainsFunc(used, Figure.measured) {
		used = slices.DeleteFunc(slices.Clone(used), func(f Figure) bool { return !f.measured() })
	}
	out := used[0]
	if len(runs) == 1 {
		return out.judged()
	}
	out.N = 0
	var sample []float64
	for _, f := range used {
		out.N += f.N
		sample = append(sample, f.Sample...)
	}
	out.Sample = thin(sample)
	if out.Value != nil {
		m, low, high := over(used, Value)
		out.Value = &m
		spread.Low.P50, spread.High.P50 = low, high
	}
	if out.Numbers != nil {
		n := *out.Numbers
		for _, s := range []Stat{P50, P95, P99, Min, Max} {
			*n.stat(s), *spread.Low.stat(s), *spread.High.stat(s) = over(used, s)
		}
		out.Numbers = &n
	}
	out.Spread = spread
	out.Control = worst(used)
	return out.judged()
}

// over is the median, the least and the most of one number, which all runs have.
func over(runs []Figure, s Stat) (mid, low, high float64) {
	var all []float64
	for _, f := range runs {
		if v, ok := f.stat(s); ok {
			all = append(all, v)
		}
	}
	return median(all), slices.Min(all), slices.Max(all)
}

// worst is the control that was the latest.
func worst(runs []Figure) Control {
	return slices.MaxFunc(runs, func(a, b Figure) int { return cmp.Compare(a.Control.P99, b.Control.P99) }).Control
}

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
