package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// TestHandlerOfDeadTurn: a handler whose turn was taken away does not run, and
// one that runs is waited for, so that its result is in the history.
func TestHandlerOfDeadTurn(t *testing.T) {
	log := debugLog(t.Output())
	c := &Conversation{dev: &Device{mail: newMailbox()}, log: log}
	var calls []handlerCall
	tn := &turn{log: log, report: func(v any) { calls = append(calls, v.(handlerCall)) }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := 0
	handler := func(*Conversation) (handled, error) { ran++; return handled{result: "done"}, nil }

	_, did, err := tn.inConversation(ctx, handler)
	c.turn, c.live = tn, true
	c.runHandler(calls[0])
	if did || ran != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("given up by its turn: ran %d times, %v", ran, err)
	}

	c.live = false
	c.runHandler(handlerCall{turn: tn, taken: new(atomic.Bool), run: func(*Conversation) handledOrError { ran++; return handledOrError{} }})
	if ran != 0 {
		t.Error("the handler of a turn without the floor ran")
	}

	c.live = true
	tn.report = func(v any) { c.runHandler(v.(handlerCall)) }
	for range 50 { // the reply and the end of the turn are there at the same time
		if got, did, err := tn.inConversation(ctx, handler); !did || err != nil || got.result != "done" {
			t.Fatalf("it ran, but %+v, %v, %v", got, did, err)
		}
	}
	_, did, err = tn.inConversation(t.Context(), func(*Conversation) (handled, error) { panic("broken handler") })
	if !did || !errors.Is(err, ErrFailed) {
		t.Errorf("a handler that panics: %v, %v", did, err)
	}
}

// TestResultWithoutHandler: a call whose turn ended before its handler could run
// has a result that says so.
func TestResultWithoutHandler(t *testing.T) {
	rec := &callRecord{call: providers.ToolCall{ID: "a"}, done: make(chan struct{})}
	rec.effect = dispatch(mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{FuncName: mcp.HandlerTimer}}, "en")
	close(rec.done)
	if got := rec.result(); got != resultCancelled {
		t.Errorf("result %q", got)
	}
}
