package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/agent/turn"
)

// TestHandlerOfDeadTurn: a handler whose turn was taken away does not run, and
// one that runs is waited for, so that its result is in the history.
func TestHandlerOfDeadTurn(t *testing.T) {
	log := debugLog(t.Output())
	c := &Conversation{dev: &Device{}, log: log, timer: time.NewTimer(time.Hour), mic: &microphone{}}
	c.state.Reply = turn.Reply{Turn: 1, Stage: turn.Speaking}
	var calls []call
	later := func(v any) { calls = append(calls, v.(call)) }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runs := 0
	handler := func() error { runs++; return nil }

	ran, err := ask(ctx, later, nil, 1, handler)
	c.runCall(calls[0])
	if ran || runs != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("given up by its turn: ran %d times, %v", runs, err)
	}

	c.state.Reply.Stage = turn.Ending
	c.runCall(call{turn: 1, taken: new(atomic.Bool), f: handler})
	if runs != 0 {
		t.Error("the handler of a turn without the floor ran")
	}

	c.state.Reply.Stage = turn.Speaking
	now := func(v any) { c.runCall(v.(call)) }
	for range 50 { // the outcome and the end of the turn are there at the same time
		if ran, err := ask(ctx, now, nil, 1, handler); !ran || err != nil {
			t.Fatalf("it ran, but %v, %v", ran, err)
		}
	}
	ran, err = ask(t.Context(), now, nil, 1, func() error { panic("broken handler") })
	if !ran || !errors.Is(err, turn.ErrFailed) {
		t.Errorf("a handler that panics: %v, %v", ran, err)
	}
}
