package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

// maxCostDays is how many days are summed up at once.
const maxCostDays = 366

// maxSpanTurns is of how many turns, the newest, services are summed up.
const maxSpanTurns = 20_000

// CostSum adds up the cost of turns of one day, device, agent or service. Services count their requests as turns.
type CostSum struct {
	Key        string  `json:"key"`
	Turns      int     `json:"turns"`
	Unpriced   int     `json:"unpriced"` // of Turns, those of which no cost is known: they are not in Micros
	Micros     int64   `json:"micros"`   // millionths of the currency
	TokensIn   int     `json:"tokens_in"`
	TokensOut  int     `json:"tokens_out"`
	Characters int     `json:"characters"`
	Seconds    float64 `json:"seconds"` // of sound that was recognised; services do not say
	Free       bool    `json:"free"`    // it is a service that nobody pays for
}

// Costs sums up what kept turns have cost.
type Costs struct {
	Currency string    `json:"currency"` // as the owner has named it; "": not named
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	All      CostSum   `json:"all"`
	Days     []CostSum `json:"days"` // the newest first
	Devices  []CostSum `json:"devices"`
	Agents   []CostSum `json:"agents"`
	Services []CostSum `json:"services"` // of the newest turns, 20,000 at most
}

// Costs sums up what turns have cost from a time on, until before another.
func (l *Lab) Costs(ctx context.Context, q store.CostQuery) (c Costs, err error) {
	if !q.From.Before(q.To) || q.To.Sub(q.From) > maxCostDays*24*time.Hour {
		return c, refuse(Invalid, "lab/period", maxCostDays)
	}
	_, seconds := q.To.In(l.o.Zone()).Zone()
	q.Offset = time.Duration(seconds) * time.Second
	rows, err := l.o.Turns.Costs(ctx, q)
	if err != nil {
		return c, err
	}
	agents, err := l.o.Agents(ctx)
	if err != nil {
		return c, err
	}
	c = Costs{Currency: l.o.Currency(), From: q.From, To: q.To, Services: []CostSum{}}
	days, devices, of := map[string]*CostSum{}, map[string]*CostSum{}, map[string]*CostSum{}
	for _, r := range rows {
		day := time.UnixMilli(int64(r.Day) * 86_400_000).UTC().Format(time.DateOnly)
		for _, s := range []*CostSum{&c.All, sumOf(days, day), sumOf(devices, r.DeviceID), sumOf(of, cmp.Or(agents[r.AgentID], r.AgentID))} {
			s.Turns += r.Turns
			s.Unpriced += r.Unpriced
			s.Micros += int64(r.CostMicros)
			s.TokensIn += r.TokensIn
			s.TokensOut += r.TokensOut
			s.Characters += r.TTSChars
			s.Seconds += r.ASRSound.Seconds()
		}
	}
	c.Days, c.Devices, c.Agents = sorted(days), sorted(devices), sorted(of)
	slices.SortFunc(c.Days, func(a, b CostSum) int { return cmp.Compare(b.Key, a.Key) })
	services := map[string]*CostSum{}
	err = l.o.Turns.Spans(ctx, q, maxSpanTurns, func(doc string) { l.addSpans(services, doc) })
	c.Services = sorted(services)
	return c, err
}

// sumOf returns the sum of a key, which it makes.
func sumOf(all map[string]*CostSum, key string) *CostSum {
	s := all[key]
	if s == nil {
		s = &CostSum{Key: key}
		all[key] = s
	}
	return s
}

// addSpans adds what services were asked in a turn. What cannot be read says nothing.
func (l *Lab) addSpans(services map[string]*CostSum, doc string) {
	var spans timeline.Spans
	if json.Unmarshal([]byte(doc), &spans) != nil {
		return
	}
	for _, a := range spans.Attempts {
		s := sumOf(services, a.Provider)
		s.Turns++
		s.Free = l.o.Prices.free(a.Provider)
		if a.Cost == 0 && !s.Free {
			s.Unpriced++
		}
		s.Micros += int64(math.Round(a.Cost * 1e6))
		s.TokensIn += a.In
		s.TokensOut += a.Out
		s.Characters += a.Chars
	}
}

// sorted lists sums, the most expensive first.
func sorted(all map[string]*CostSum) []CostSum {
	out := []CostSum{}
	for _, s := range all {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b CostSum) int {
		return cmp.Or(cmp.Compare(b.Micros, a.Micros), cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Key, b.Key))
	})
	return out
}
