package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
)

// The values of store.driver that M18 compares.
const (
	storeOn  = "auto"
	storeOff = "none"
)

const (
	storeMemory = 10   // MiB that the store may add to the base process (M18)
	leastNoise  = 1.05 // a ratio up to this is noise, however quiet the machine was (M18)
)

// keeping is one side of M18: what M1, M5 and M11 measure, while some devices take one turn after the other, and the
// memory of the process.
func keeping(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(r.endless())
	base, err := r.resident(ctx)
	if err != nil {
		return nil, err
	}
	before := r.own.kept()
	figures := []Figure{single("M18", "base process", "MiB", 1, float64(base)/1024).untimed()}
	alone, _, err := r.presses(ctx, r.press.turns)
	figures = append(figures, sampled("M18", "added latency, manual, 1 session", ms(alone)))
	if err != nil {
		return figures, err
	}
	speakers, err := r.speaking(ctx, r.press.crowd, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return figures, err
	}
	crowded, jitter, err := r.beside(ctx, speakers)
	figures = append(figures,
		sampled("M18", fmt.Sprintf("added latency, manual, %d speaking", r.press.crowd), ms(crowded)),
		sampled("M18", fmt.Sprintf("jitter, %d speaking beside one who takes turns", r.press.crowd), ms(jitter)).asJitter())
	if err != nil {
		return figures, err
	}
	for _, c := range speakers {
		r.drop(c)
	}
	most, err := density(ctx, r)
	for _, f := range most {
		f.Metric, f.Goals = "M18", nil
		figures = append(figures, f)
	}
	if err != nil {
		return figures, err
	}
	return append(figures, single("M18", "growth of the database", "KiB", 1, float64(r.own.kept()-before)/1024).untimed()), nil
}

// beside takes turns with one device while others are being spoken to: what was added to its turns, and their jitter.
func (r *rig) beside(ctx context.Context, speakers []*client) (added, jitter []time.Duration, err error) {
	if err := pause(ctx, time.Second); err != nil { // until the last has its lead
		return nil, nil, err
	}
	for _, c := range speakers {
		c.frames.forget()
	}
	added, _, err = r.presses(ctx, r.press.turns)
	for _, c := range speakers {
		jitter = append(jitter, apart(c.frames.all(), c.packet)...)
	}
	return added, jitter, err
}

// kept is the size in bytes of what our own server keeps in its database.
func (o *own) kept() (bytes int64) {
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(o.dir, "data", "xiaozhi.db"+end)); err == nil {
			bytes += info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 0
		}
	}
	return bytes
}

// paired measures a scenario on two servers of ours, with the store and without, in the order A B B A so that a slow
// drift of the machine meets both, and compares them.
func (b *bench) paired(ctx context.Context, s scenario, run int) []Figure {
	if b.o.URL != "" {
		return []Figure{unmeasured("M18", "the store, on and off", "only of a server that the bench starts").judged()}
	}
	sides := map[string][][]Figure{}
	for i, driver := range []string{storeOn, storeOff, storeOff, storeOn} {
		one := scenario{names: s.names, about: s.about, run: s.pair, needs: settings{store: driver}}
		sides[driver] = append(sides[driver], b.one(ctx, one, 4*run+i))
		if ctx.Err() != nil {
			return nil
		}
	}
	return mapped(onAndOff(sides[storeOn], sides[storeOff]), Figure.judged)
}

// onAndOff compares the figures of several runs with the store, and without.
func onAndOff(on, off [][]Figure) (all []Figure) {
	for _, first := range slices.Concat(on...) {
		same := func(f Figure) bool { return f.What == first.What }
		if slices.ContainsFunc(all, func(f Figure) bool { return strings.HasPrefix(f.What, first.What+", store ") }) {
			continue
		}
		with, without := matching(on, same), matching(off, same)
		if len(without) == 0 {
			continue
		}
		a, b := combine(with), combine(without)
		a.What, b.What = first.What+", store on", first.What+", store off"
		all = append(all, a, b)
		switch {
		case a.Value == nil:
			for _, s := range []Stat{P50, P99} {
				all = append(all, noise("M18", first.What, s, with, without))
			}
		case first.What == "base process":
			more := single("M18", "what the store adds to the base process", "MiB", len(with)+len(without), *a.Value-*b.Value, most(Value, storeMemory))
			all = append(all, more.untimed())
		case first.What == "growth of the database":
			all = append(all, single("M18", "what only a store writes", "KiB", len(with)+len(without), *a.Value-*b.Value, least(Value, 1)).untimed())
		}
	}
	return all
}

func matching(runs [][]Figure, which func(Figure) bool) (all []Figure) {
	for _, figures := range runs {
		for _, f := range figures {
			if which(f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// noise is the ratio of a quantile with something to that without. It is fine up to the noise: the ratios between runs of
// the same server, and how far chance alone could move it.
func noise(metric, what string, s Stat, on, off []Figure) Figure {
	percent := map[Stat]int{P50: 50, P99: 99}[s]
	on, off = heard(on), heard(off)
	x, y := samples(off), samples(on)
	f := Figure{Metric: metric, What: fmt.Sprintf("%s: %s on / off", what, s), Unit: "×"}
	if len(x) == 0 || len(y) == 0 || quantile(x, percent) <= 0 {
		f.Note = "no sample"
		return f
	}
	ratio, low, high := ratioOf(x, y, percent)
	limit := max(leastNoise, ratio/low, apartBy(on, s), apartBy(off, s))
	f = single(metric, f.What, "×", len(x)+len(y), ratio, most(Value, limit)).noted("95 %% interval %s..%s", number(low), number(high))
	f.Control = worst(slices.Concat(on, off))
	return f
}

// heard are the runs that are not void, or all if all are.
func heard(runs []Figure) []Figure {
	if good := slices.DeleteFunc(slices.Clone(runs), Figure.void); len(good) > 0 {
		return good
	}
	return runs
}

// samples are the sorted measurements of all runs.
func samples(runs []Figure) (all []float64) {
	for _, f := range runs {
		all = append(all, f.Sample...)
	}
	slices.Sort(all)
	return all
}

// apartBy is the ratio of the largest to the least of a number of several runs.
func apartBy(runs []Figure, s Stat) float64 {
	_, low, high := over(runs, s)
	return high / cmp.Or(low, high, 1)
}
