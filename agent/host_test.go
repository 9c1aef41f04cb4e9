package agent

import (
	"context"
	"errors"
	"testing"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
)

// TestHandlerOfDeadTurn: a handler whose turn was taken away does not run, and
// one that runs is waited for, so that its result is in the history.
func TestHandlerOfDeadTurn(t *testing.T) {
	c := &Conversation{events: make(chan func(), 64), env: feature.Env{Log: debugLog(t.Output())}}
	c.state.Reply = turn.Reply{Turn: 1, Stage: turn.Speaking}
	runs := 0
	// ask has the handler run, then its turn ends.
	ask := func(f func() error) (ran bool, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			(<-c.events)()
			cancel()
		}()
		return c.ask(ctx, 1, f)
	}
	handler := func() error { runs++; return nil }

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran, err := c.ask(ctx, 1, handler)
	for len(c.events) > 0 {
		(<-c.events)()
	}
	if ran || runs != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("given up by its turn: ran %d times, %v", runs, err)
	}

	c.state.Reply.Stage = turn.Ending
	if ran, _ := ask(handler); ran || runs != 0 {
		t.Error("the handler of a turn without the floor ran")
	}

	c.state.Reply.Stage = turn.Speaking
	for range 50 { // the outcome and the end of the turn are there at the same time
		if ran, err := ask(handler); !ran || err != nil {
			t.Fatalf("it ran, but %v, %v", ran, err)
		}
	}
	if ran, err = ask(func() error { panic("broken handler") }); !ran || !errors.Is(err, turn.ErrFailed) {
		t.Errorf("a handler that panics: %v, %v", ran, err)
	}
}
