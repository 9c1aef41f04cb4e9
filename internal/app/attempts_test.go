package app

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

// TestAttemptsAreKeptWithTheirCost: the record of a turn says whom it asked, what came of
// it, and what that cost.
func TestAttemptsAreKeptWithTheirCost(t *testing.T) {
	k := &keeper{prices: map[string]config.Price{
		"ears": {Minute: 0.6}, "brain": {Input: 1, Cached: 0.5, Output: 2}, "voice": {Characters: 3},
	}}
	begun := time.Now()
	var turn store.Turn
	k.spent(&turn, []timeline.Attempt{
		{Op: "recognize", Provider: "ears", Asked: begun, Took: time.Second, Outcome: timeline.Answered, Sound: 10 * time.Second},
		{Op: "think", Provider: "gone", Asked: begun.Add(time.Second), Took: time.Second, Outcome: timeline.Failed, Fault: strings.Repeat("no ", 100)},
		{Op: "think", Provider: "brain", Asked: begun.Add(2 * time.Second), First: 300 * time.Millisecond, Took: time.Second, Outcome: timeline.Answered, Tokens: timeline.Tokens{Prompt: 1000, Completion: 100}, Cached: 400},
		{Op: "speak", Provider: "voice", Asked: begun.Add(3 * time.Second), First: time.Microsecond, Took: time.Second, Outcome: timeline.Lost, Characters: 10},
	})
	if want := 100000 + 600 + 200 + 200 + 30000; turn.CostMicros != want {
		t.Errorf("the turn cost %d millionths, want %d", turn.CostMicros, want)
	}
	if turn.TokensIn != 1000 || turn.TokensOut != 100 || turn.TTSChars != 10 || turn.ASRSound != 10*time.Second {
		t.Errorf("%+v", turn)
	}
	var kept struct {
		Attempts []keptAttempt `json:"attempts"`
	}
	if err := json.Unmarshal([]byte(turn.Spans), &kept); err != nil || len(kept.Attempts) != 4 {
		t.Fatalf("%s: %v", turn.Spans, err)
	}
	if a := kept.Attempts[1]; a.At != 1000 || a.Outcome != timeline.Failed || len(a.Fault) > maxFault+4 || a.Fault == "" {
		t.Errorf("%+v", a)
	}
	if a := kept.Attempts[3]; a.First != 1 || a.Cost != 0.03 {
		t.Errorf("%+v", a)
	}
	var many []timeline.Attempt
	for range 300 {
		many = append(many, timeline.Attempt{Op: "think", Provider: "brain", Asked: begun, Outcome: timeline.Answered})
	}
	turn = store.Turn{}
	if k.spent(&turn, many); turn.Spans == "" || len(turn.Spans) > maxSpans {
		t.Errorf("%d bytes of spans", len(turn.Spans))
	}
}
