package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// resamples is the number of bootstrap samples for the interval of a ratio.
const resamples = 1000

// Compare writes a table of the figures that two servers have in common: the one of the first report, and the other
// one. Samples of all reports of a server count together, void ones apart. Beside the ratio of two quantiles stands
// its 95 % interval by bootstrap, with the same random numbers each time.
func Compare(w io.Writer, reports []*Report) error {
	if len(reports) < 2 {
		return fmt.Errorf("%d reports, two or more are needed", len(reports))
	}
	names := []string{reports[0].Server}
	for _, r := range reports {
		if !slices.Contains(names, r.Server) {
			names = append(names, r.Server)
		}
	}
	if len(names) != 2 {
		return fmt.Errorf("the reports are of %d servers (%s), not of two; --label names them", len(names), strings.Join(names, ", "))
	}
	a, order := pool(reports, names[0])
	b, _ := pool(reports, names[1])
	fmt.Fprintf(w, "A: %s\nB: %s\nratio: B / A, with its 95 %% interval\n\n", names[0], names[1])
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "metric\twhat\tunit\tN A\tN B\tp50 A\tp50 B\tratio\tp99 A\tp99 B\tratio\tleft out")
	for _, key := range order {
		if other, ok := b[key]; ok {
			fmt.Fprintln(t, strings.Join(compared(a[key], other), "\t"))
		}
	}
	return t.Flush()
}

// pooled is one figure of all reports of a server.
type pooled struct {
	Figure
	sample []float64 // of what is not void; the values of a figure that has no sample
	void   int       // reports whose figure was void
}

// pool gathers the figures of a server by metric and what they are of, and their order.
func pool(reports []*Report, server string) (figures map[string]*pooled, order []string) {
	figures = make(map[string]*pooled)
	for _, r := range reports {
		if r.Server != server {
			continue
		}
		for _, f := range r.Figures {
			key := f.Metric + " " + f.What
			if figures[key] == nil {
				figures[key] = &pooled{Figure: f}
				order = append(order, key)
			}
			switch p := figures[key]; {
			case f.void():
				p.void++
			case f.Value != nil:
				p.sample = append(p.sample, *f.Value)
			default:
				p.sample = append(p.sample, f.Sample...)
			}
		}
	}
	return figures, order
}

func compared(a, b *pooled) []string {
	cells := []string{a.Metric, a.What, a.Unit, strconv.Itoa(len(a.sample)), strconv.Itoa(len(b.sample))}
	for _, percent := range []int{50, 99} {
		if len(a.sample) == 0 || len(b.sample) == 0 || (percent == 99 && a.Value != nil) {
			cells = append(cells, "", "", "")
			continue
		}
		x, y := slices.Sorted(slices.Values(a.sample)), slices.Sorted(slices.Values(b.sample))
		cells = append(cells, number(quantile(x, percent)), number(quantile(y, percent)), ratioText(x, y, percent, a.Value == nil))
	}
	out := ""
	if a.void+b.void > 0 {
		out = fmt.Sprintf("%d void", a.void+b.void)
	}
	return append(cells, out)
}

// ratioText is a ratio for people, with its interval if that is wanted; "-" where there is none, because x may be 0.
func ratioText(x, y []float64, percent int, interval bool) string {
	if x[0] <= 0 {
		return "-"
	}
	ratio, low, high := ratioOf(x, y, percent)
	if !interval {
		return number(ratio)
	}
	return fmt.Sprintf("%s (%s..%s)", number(ratio), number(low), number(high))
}

// ratioOf is the ratio of a quantile of two sorted samples, y over x, and
// between what 95 of 100 such ratios of samples drawn from them lie.
func ratioOf(x, y []float64, percent int) (ratio, low, high float64) {
	random := rand.New(rand.NewPCG(1, uint64(percent)))
	ratios := make([]float64, resamples)
	for i := range ratios {
		ratios[i] = quantile(drawn(random, y), percent) / quantile(drawn(random, x), percent)
	}
	slices.Sort(ratios)
	return quantile(y, percent) / quantile(x, percent), ratios[resamples*25/1000], ratios[resamples*975/1000]
}

// drawn is a sorted sample of the same size, each value drawn by chance.
func drawn(random *rand.Rand, from []float64) []float64 {
	out := make([]float64, len(from))
	for i := range out {
		out[i] = from[random.IntN(len(from))]
	}
	slices.Sort(out)
	return out
}
