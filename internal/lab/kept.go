package lab

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// Kept is a turn as it was kept, with what was said before it.
type Kept struct {
	ID     string
	Device string
	Agent  string // by name; "": not known
	At     time.Time
	Input  Input
	Result Result // what came of it
	Worked int    // calls of tools that went well
	Failed int
	Spoken time.Duration // of sound that was recognised
	Typed  bool
}

// Turns reads kept turns.
type Turns interface {
	// Get returns a turn with its messages and calls.
	Get(ctx context.Context, id string) (store.Turn, []store.Message, []store.Call, error)
	// Before returns the messages of the last turns of the same talk before one, at most limit of these.
	Before(ctx context.Context, t store.Turn, limit int) ([]store.Message, error)
	// List lists turns of a device, or of all for "", the newest first.
	List(ctx context.Context, device string, p store.Page) ([]store.Turn, error)
	// Costs sums up what turns have cost.
	Costs(ctx context.Context, q store.CostQuery) ([]store.CostRow, error)
	// Spans hands over what turns did when, as it is kept, the newest first.
	Spans(ctx context.Context, q store.CostQuery, limit int, each func(spans string)) error
}

// ReadMessage reads the row of a message.
type ReadMessage func(row store.Message) (providers.Message, error)

// read makes a kept turn of its rows.
func read(t store.Turn, rows, before []store.Message, calls []store.Call, readRow ReadMessage) (k Kept, err error) {
	k = Kept{
		ID: t.ID, Device: t.DeviceID, At: t.At, Spoken: t.ASRSound, Typed: t.Kind == "typed",
		Input: Input{Words: t.Heard, Lang: text.Lang(t.Language)},
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	k.Result = Result{
		Heard: t.Heard, Said: t.Said, ASR: t.ASRName, LLM: t.LLMName, TTS: t.TTSName,
		Sums:  Sums{EOU: ms(t.EOU), ASR: ms(t.ASR), TTFT: ms(t.TTFT), TTFS: ms(t.TTFS), TTFB: ms(t.TTFB), Wait: ms(t.E2E)},
		Steps: t.Steps, TokensIn: t.TokensIn, TokensOut: t.TokensOut, Characters: t.TTSChars,
		Calls: []CallRow{}, Fault: t.Fault, Cut: t.Cause != "done", Rating: t.Rating,
	}
	for _, row := range before {
		m, err := readRow(row)
		if err != nil {
			return k, err
		}
		k.Input.History = append(k.Input.History, m)
	}
	var own []providers.Message
	for _, row := range rows {
		m, err := readRow(row)
		if err != nil {
			return k, err
		}
		own = append(own, m)
	}
	for i, m := range own {
		last := !slices.ContainsFunc(own[i+1:], func(next providers.Message) bool { return next.Role == providers.RoleAssistant })
		for _, c := range m.ToolCalls {
			r := Recorded{Name: c.Name, Arguments: c.Arguments, Result: resultOf(own, c.ID), Ends: last, Said: m.Content}
			k.Input.Record = append(k.Input.Record, r)
			k.Result.Calls = append(k.Result.Calls, CallRow{Name: r.Name, Arguments: r.Arguments, Result: r.Result, From: FromTurn})
		}
	}
	for _, c := range calls {
		if c.Fault == "" {
			k.Worked++
		} else {
			k.Failed++
		}
	}
	return k, nil
}

// original returns what came of the turn, to be compared with trials: its recogniser counts where one of theirs has worked.
func (k *Kept) original(trials ...Result) Result {
	r := k.Result
	if r.Sums.TTFS+r.Sums.TTFB == 0 {
		return r
	}
	r.Sums.Work = r.Sums.TTFS + r.Sums.TTFB
	if slices.ContainsFunc(trials, func(t Result) bool { return t.Sums.ASR > 0 }) {
		r.Sums.Work += r.Sums.ASR
	}
	return r
}

// costOf returns what a turn has cost, with the services whose cost is not known.
func (l *Lab) costOf(t store.Turn) (c Cost) {
	c.Micros = int64(t.Cost())
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) && !l.o.Prices.free(name) {
			names = append(names, name)
		}
	}
	var spans timeline.Spans
	if json.Unmarshal([]byte(t.Spans), &spans) != nil || len(spans.Attempts) == 0 {
		if t.CostMicros == nil {
			add(t.ASRName)
			add(t.LLMName)
			add(t.TTSName)
		}
	}
	for _, a := range spans.Attempts {
		if a.Cost == 0 && a.Outcome == timeline.Answered {
			add(a.Provider)
		}
	}
	c.Missing = strings.Join(names, ", ")
	return c
}

// resultOf finds what a call was answered.
func resultOf(messages []providers.Message, id string) string {
	for _, m := range messages {
		if m.Role == providers.RoleTool && m.ToolCallID == id {
			return m.Content
		}
	}
	return ""
}
