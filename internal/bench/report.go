package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is all that a bench has to say.
type Report struct {
	Started  time.Time      `json:"started"`
	Took     float64        `json:"took_s"`
	Command  string         `json:"command"`
	Server   string         `json:"server"` // its label, its address, or that it was our own
	Size     Size           `json:"size"`
	Runs     int            `json:"runs"`
	Machine  Machine        `json:"machine"`
	Settings Settings       `json:"settings"`
	Load     []float64      `json:"load_average"` // at the end
	Figures  []Figure       `json:"figures"`
	Broken   map[string]int `json:"rules_broken,omitempty"` // of the device protocol, by name
	Excused  map[string]int `json:"rules_broken_on_a_busy_machine,omitempty"`
	Errors   []string       `json:"errors,omitempty"`
}

// Settings are the assumptions that figures were calculated with.
type Settings struct {
	Guard   float64 `json:"guard_ms"`
	Silence float64 `json:"silence_ms"`
}

// JSON writes the report as one JSON document.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) error {
	fmt.Fprintf(w, "%s\nserver: %s; size %s, runs: %d; guard %g ms, silence %g ms\n", r.Command, r.Server, r.Size, r.Runs, r.Settings.Guard, r.Settings.Silence)
	fmt.Fprintf(w, "machine: %s, %d cores, %s, %s, %s; %s\n", r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Machine.Go, r.Machine.Codec, r.Machine.Pinned)
	fmt.Fprintf(w, "load average %s; took %.0f s\n\n", loads(r.Load), r.Took)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "metric\twhat\tN\tp50\tp95\tp99\tmax\tunit\tgoal\tverdict\tcontrol p99\tload")
	for _, f := range r.Figures {
		fmt.Fprintln(t, strings.Join(f.row(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	r.footer(w)
	return nil
}

func (f Figure) row() []string {
	cells := []string{f.Metric, f.What, strconv.Itoa(f.N)}
	switch {
	case f.Value != nil:
		cells = append(cells, f.spread(Value), "", "", "")
	case f.Numbers != nil:
		cells = append(cells, f.spread(P50), number(f.Numbers.P95), f.spread(P99), number(f.Numbers.Max))
	default:
		cells = append(cells, "-", "-", "-", "-")
	}
	control := number(f.Control.P99)
	if f.Control.Core > 0 {
		control += " / " + number(f.Control.Core)
	}
	load := ""
	if len(f.Control.Load) > 0 {
		load = number(f.Control.Load[0])
	}
	return append(cells, f.Unit, strings.Join(mapped(f.Goals, Goal.String), ", "), string(f.Verdict), control, load)
}

// spread is a number, with its least and its most if there were several runs.
func (f Figure) spread(s Stat) string {
	v, _ := f.stat(s)
	if f.Spread == nil {
		return number(v)
	}
	return fmt.Sprintf("%s (%s..%s)", number(v), number(*f.Spread.Low.stat(s)), number(*f.Spread.High.stat(s)))
}

// footer explains what the table cannot hold.
func (r *Report) footer(w io.Writer) {
	fmt.Fprintf(w, "\ncontrol: p99 in ms of timers that do nothing, beside the load / on the server's core.\n"+
		"void: a timer was more than %g ms late (the server's core counts if the server used less than half of it).\n", controlLimit)
	for _, f := range r.Figures {
		notes := f.Note
		if f.TimesControl > 0 {
			notes = strings.TrimPrefix(notes+fmt.Sprintf("; p99 is %s times the control's", number(f.TimesControl)), "; ")
		}
		if notes != "" {
			fmt.Fprintf(w, "%s %s: %s\n", f.Metric, f.What, notes)
		}
	}
	for _, broken := range []struct {
		what  string
		rules map[string]int
	}{{"rules of the device protocol that were broken", r.Broken}, {"rules about time that were broken on a busy machine", r.Excused}} {
		var rules []string
		for name, n := range broken.rules {
			rules = append(rules, fmt.Sprintf("%s %d", name, n))
		}
		if slices.Sort(rules); len(rules) > 0 {
			fmt.Fprintf(w, "%s: %s\n", broken.what, strings.Join(rules, ", "))
		}
	}
	for _, e := range r.Errors {
		fmt.Fprintln(w, "error:", e)
	}
	count := make(map[Verdict]int)
	for _, f := range r.Figures {
		count[f.Verdict]++
	}
	fmt.Fprintf(w, "%d pass, %d miss, %d void\n", count[Pass], count[Miss], count[Void])
}

// number is a number with three digits that mean something.
func number(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e6, a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
}

func loads(l []float64) string {
	if len(l) == 0 {
		return "not known"
	}
	return strings.Join(mapped(l, number), " ")
}

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
	const resamples = 1000 // by bootstrap
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
