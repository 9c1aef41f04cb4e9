package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestCosts: both engines sum up by device, agent and day of a zone, and count the turns of which no cost is known.
func TestCosts(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, day := t.Context(), time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
		addDevice(t, s, "m")
		addDevice(t, s, "n")
		for i, turn := range []struct {
			device string
			at     time.Duration
			cost   *int
		}{{"m", 0, new(5)}, {"m", time.Hour, nil}, {"m", 5 * time.Hour, new(7)}, {"n", 0, new(0)}, {"n", -48 * time.Hour, new(9)}} {
			e := turnOf(turn.device, "c-"+turn.device, i)
			e.Turn.At, e.Turn.CostMicros, e.Turn.TokensIn, e.Turn.Spans = day.Add(turn.at), turn.cost, 10, `{"n":1}`
			e.Turn.E2E, e.Turn.Fault, e.Turn.Cause = time.Duration(100*(i+1))*time.Millisecond, []string{"", "asr"}[i%2], []string{"", "barge-in"}[i%2]
			s.Log.Put(e)
		}
		flush(t, s)
		q := CostQuery{From: day, To: day.Add(24 * time.Hour), Offset: time.Hour}
		rows, err := s.Turns.Costs(ctx, q)
		got := ""
		for _, r := range rows {
			got += fmt.Sprintf("%s day %d: %d turns, %d unpriced, %d micros, %d tokens. ", r.DeviceID, r.Day-20779, r.Turns, r.Unpriced, r.CostMicros, r.TokensIn)
		}
		if got != "m day 1: 1 turns, 0 unpriced, 7 micros, 10 tokens. m day 0: 2 turns, 1 unpriced, 5 micros, 20 tokens. n day 0: 1 turns, 0 unpriced, 0 micros, 10 tokens. " || err != nil {
			t.Error(got, err)
		}
		if hours, err := s.Turns.Hours(ctx, q); err != nil || !slices.Equal(hours, []HourRow{{0, 2, 1}, {1, 1, 1}, {5, 1, 0}}) {
			t.Errorf("%+v %v", hours, err)
		}
		q.DeviceID = "n"
		if hours, err := s.Turns.Hours(ctx, q); err != nil || !slices.Equal(hours, []HourRow{{0, 1, 1}}) {
			t.Errorf("%+v %v", hours, err)
		}
		if rows, err := s.Turns.Costs(ctx, q); len(rows) != 1 || err != nil {
			t.Errorf("%+v %v", rows, err)
		}
		if sum, err := s.Turns.Summary(ctx, CostQuery{From: day, To: q.To}); err != nil || sum != (Summary{Turns: 4, Failed: 2, Cut: 2, P50: 200 * time.Millisecond, P95: 400 * time.Millisecond}) {
			t.Errorf("%+v %v", sum, err)
		}
		if sum, err := s.Turns.Summary(ctx, CostQuery{From: day, To: q.To, OwnerID: "nobody"}); err != nil || sum != (Summary{}) {
			t.Errorf("%+v %v", sum, err)
		}
		if rows, err := s.Turns.Costs(ctx, CostQuery{From: day, To: q.To, OwnerID: "nobody"}); len(rows) != 0 || err != nil {
			t.Errorf("%+v %v", rows, err)
		}
		n := 0
		want(t, s.Turns.Spans(ctx, CostQuery{From: day, To: q.To}, 3, func(doc string) {
			if n++; doc != `{"n":1}` {
				t.Error(doc)
			}
		}), nil)
		turns, err := s.Turns.List(ctx, "m", Page{})
		if err != nil || n != 3 || len(turns) != 3 {
			t.Fatal(n, len(turns), err)
		}
		before, err := s.Turns.Before(ctx, turns[0], 64)
		all, _ := s.Turns.Before(ctx, Turn{ConversationID: turns[0].ConversationID, Seq: 1000}, 1000)
		if err != nil || len(before) == 0 || len(before) >= len(all) {
			t.Errorf("%d of %d messages before, %v", len(before), len(all), err)
		}
	})
}
