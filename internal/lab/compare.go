package lab

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"xiaozhi/store"
)

const (
	maxCompared = 50
	compareTime = 20 * time.Minute
	maxLooked   = 500 // turns that are looked through for those that can be answered again
)

// CompareOrder says what is compared over the last turns of a device.
type CompareOrder struct {
	Device string `json:"device"`
	Agent  string `json:"agent,omitempty"` // turns of this one alone, by name; "": of any
	Last   int    `json:"last"`
	A      Setup  `json:"a"`
	B      Setup  `json:"b"`
	Sound  bool   `json:"sound,omitempty"` // sound that is kept is recognised again
	Speak  bool   `json:"speak,omitempty"` // voices are asked too
}

// CompareRow holds one turn as it was and as either side answers it.
type CompareRow struct {
	ReplayRow

	B Result `json:"b"` // Replay is a
}

// Side sums up one side. Times are in milliseconds; 0: not known.
type Side struct {
	Turns    int   `json:"turns"`
	Failed   int   `json:"failed"`
	First50  int64 `json:"first_p50"` // to the first sentence, with recognition where a trial has some
	First95  int64 `json:"first_p95"`
	Work50   int64 `json:"work_p50"` // to the first sound; endpoint and wire, which trials do not have, are not in it
	Work95   int64 `json:"work_p95"`
	Length   int   `json:"length"` // characters of an answer, the mean
	Calls    int   `json:"calls"`
	Known    int   `json:"calls_known"` // of Calls, those that the record answers
	Cost     Cost  `json:"cost"`
	Unpriced int   `json:"unpriced"` // turns with services that have no price
}

// Compared sums up a comparison, with what is known of the kept turns alone.
type Compared struct {
	Original    Side `json:"original"`
	A           Side `json:"a"`
	B           Side `json:"b"`
	Interrupted int  `json:"interrupted"` // kept turns that the user did not hear all of
	ToolsWorked int  `json:"tools_worked"`
	ToolsFailed int  `json:"tools_failed"`
	Up          int  `json:"up"`
	Down        int  `json:"down"`
}

// Estimate says what a comparison will about cost, by what the kept turns took.
type Estimate struct {
	Turns   int  `json:"turns"`
	A       Cost `json:"a"`
	B       Cost `json:"b"`
	Unknown int  `json:"unknown"` // turns that do not say what they took
}

// Last lists the newest turns of a device that can be answered again, the oldest first.
func (l *Lab) Last(ctx context.Context, order CompareOrder) (all []Kept, err error) {
	if order.Last < 1 || order.Last > maxCompared {
		return nil, refuse(Invalid, "lab/last", maxCompared)
	}
	agents, err := l.o.Agents(ctx)
	if err != nil {
		return nil, err
	}
	page := store.Page{Limit: 100}
	for looked := 0; looked < maxLooked && len(all) < order.Last; looked += page.Limit {
		turns, err := l.o.Turns.List(ctx, order.Device, page)
		if err != nil {
			return nil, err
		}
		for _, t := range turns {
			if t.Heard == "" || t.Kind == "server" || order.Agent != "" && agents[t.AgentID] != order.Agent || len(all) == order.Last {
				continue
			}
			k, err := l.Kept(ctx, t.ID)
			if err != nil {
				return nil, err
			}
			all = append(all, k)
		}
		if len(turns) < page.Limit {
			break
		}
		last := turns[len(turns)-1]
		page.Before = store.Cursor{At: last.At, ID: last.ID}
	}
	if len(all) == 0 {
		return nil, refuse(Missing, "lab/no-turns")
	}
	slices.Reverse(all)
	return all, nil
}

// Estimate says what a comparison of turns will about cost.
func (l *Lab) Estimate(ctx context.Context, order CompareOrder, turns []Kept) (e Estimate, err error) {
	e.Turns = len(turns)
	for _, k := range turns {
		if k.Result.TokensIn == 0 {
			e.Unknown++
		}
	}
	for i, s := range []Setup{order.A, order.B} {
		cast, err := l.cast(ctx, order.Device, s, order.Sound, !order.Speak)
		if err != nil {
			return e, err
		}
		c := l.estimate(cast, turns)
		cast.Close()
		*[]*Cost{&e.A, &e.B}[i] = c
	}
	return e, nil
}

// estimate foretells the cost of one side.
func (l *Lab) estimate(cast Cast, turns []Kept) Cost {
	var missing []string
	money := 0.0
	ask := func(service string, of func(i int) float64, there bool) {
		if !there {
			missing = append(missing, service)
			return
		}
		for i := range turns {
			money += of(i)
		}
	}
	price, there := l.o.Prices(cast.LLM.Name())
	ask(cast.LLM.Name(), func(i int) float64 {
		r := turns[i].Result
		return (float64(r.TokensIn)*price.Input + float64(r.TokensOut)*price.Output) / 1e6
	}, there)
	if cast.ASR != nil {
		price, there := l.o.Prices(cast.ASR.Name())
		ask(cast.ASR.Name(), func(i int) float64 { return price.Hearing(turns[i].Spoken) }, there)
	}
	if cast.TTS != nil {
		price, there := l.o.Prices(cast.TTS.Name())
		ask(cast.TTS.Name(), func(i int) float64 { return price.Spoken(len([]rune(turns[i].Result.Said))) }, there)
	}
	return Cost{int64(math.Round(money * 1e6)), strings.Join(missing, ", ")}
}

// Compare begins to have two setups answer kept turns, one after the other. Nothing of it is kept with the device.
func (l *Lab) Compare(person string, order CompareOrder, turns []Kept) (*Run, error) {
	return l.runs.Start(person, "compare", len(turns), compareTime, func(ctx context.Context, r *Run) error {
		a, err := l.cast(ctx, order.Device, order.A, order.Sound, !order.Speak)
		if err != nil {
			return err
		}
		defer a.Close()
		b, err := l.cast(ctx, order.Device, order.B, order.Sound, !order.Speak)
		if err != nil {
			return err
		}
		defer b.Close()
		var sum tally
		for _, k := range turns {
			in := k.Input
			if order.Sound {
				if in.Sound, err = l.o.Sound(ctx, k.ID); err != nil {
					return err
				}
			}
			row := CompareRow{ReplayRow: ReplayRow{Turn: k.ID}}
			row.Replay, _ = answer(ctx, a, in, l.o.Prices)
			row.B, _ = answer(ctx, b, in, l.o.Prices)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			row.Original = k.original(row.Replay, row.B)
			r.add(row, sum.add(k, row))
		}
		return nil
	})
}

// tally sums up the rows of a comparison.
type tally struct {
	sum         Compared
	first, wait [3][]int64 // of the kept turns, a and b
	length      [3]int
}

// add takes a row in, and returns what all come to.
func (t *tally) add(k Kept, row CompareRow) Compared {
	for i, r := range []Result{row.Original, row.Replay, row.B} {
		s := []*Side{&t.sum.Original, &t.sum.A, &t.sum.B}[i]
		s.Turns++
		if r.Fault != "" {
			s.Failed++
		}
		if r.Sums.TTFS > 0 {
			first := r.Sums.ASR + r.Sums.TTFS
			if i == 0 {
				first = r.Sums.Work - r.Sums.TTFB // its recogniser counts where one of a trial has worked
			}
			t.first[i] = append(t.first[i], first)
		}
		if r.Sums.Work > 0 {
			t.wait[i] = append(t.wait[i], r.Sums.Work)
		}
		t.length[i] += len([]rune(r.Said))
		s.Length = t.length[i] / s.Turns
		s.Calls += len(r.Calls)
		for _, c := range r.Calls {
			if c.From != FromNone {
				s.Known++
			}
		}
		if s.Cost.Micros += r.Cost.Micros; r.Cost.Missing != "" {
			s.Unpriced++
		}
		s.First50, s.First95 = quantile(t.first[i], 50), quantile(t.first[i], 95)
		s.Work50, s.Work95 = quantile(t.wait[i], 50), quantile(t.wait[i], 95)
	}
	if k.Result.Cut {
		t.sum.Interrupted++
	}
	t.sum.ToolsWorked += k.Worked
	t.sum.ToolsFailed += k.Failed
	t.sum.Up += max(0, k.Result.Rating)
	t.sum.Down += max(0, -k.Result.Rating)
	return t.sum
}

// quantile returns the value that so many of a hundred are not above; 0 if there are none.
func quantile(all []int64, percent int) int64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, (len(sorted)*percent+99)/100-1)]
}
