package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"xiaozhi/providers"
)

// TestLLM is the suite of language models, and of what stands in for one. The
// model made by open answers req with text or tool calls.
func TestLLM(t *testing.T, open func(t *testing.T) providers.LLM, req providers.LLMRequest) {
	t.Run("an answer", func(t *testing.T) {
		l := open(t)
		if l.Name() == "" {
			t.Error("it has no name")
		}
		within(t, "the answer", func() { wantAnswer(t, l, req) })
	})
	t.Run("many at once", func(t *testing.T) {
		l := open(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { wantAnswer(t, l, req) })
		}
		within(t, "four answers", all.Wait)
	})
	t.Run("cancelled before", func(t *testing.T) {
		within(t, "the answer", func() { wantContextError(t, lastError(ended(t), open(t), req)) })
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		within(t, "the answer", func() {
			var last error
			for _, err := range open(t).Generate(ctx, req) {
				cancel()
				last = err
			}
			// An answer that was complete already may end well.
			if last != nil {
				wantContextError(t, last)
			}
		})
	})
	t.Run("the loop is left", func(t *testing.T) {
		l := open(t)
		within(t, "leaving the loop", func() {
			for range l.Generate(t.Context(), req) {
				break
			}
			wantAnswer(t, l, req)
		})
	})
}

// TestLLMFailure checks that a model that cannot answer says so as the contract
// wants: one error of this kind, as the last thing.
func TestLLMFailure(t *testing.T, l providers.LLM, req providers.LLMRequest, kind providers.Kind) {
	t.Helper()
	within(t, "the failure", func() { WantError(t, lastError(t.Context(), l, req), l.Name(), kind) })
}

// WantError checks that err is a provider's error of this kind.
func WantError(t *testing.T, err error, provider string, kind providers.Kind) {
	t.Helper()
	failed, ok := errors.AsType[*providers.Error](err)
	if !ok {
		t.Errorf("got error %v, want a *providers.Error", err)
		return
	}
	if failed.Kind != kind || failed.Provider != provider || failed.Op == "" || failed.Err == nil {
		t.Errorf("got error %+v (%v), want one of %s of kind %s", *failed, err, provider, kind)
	}
}

// lastError reads the whole answer and gives its error.
func lastError(ctx context.Context, l providers.LLM, req providers.LLMRequest) (last error) {
	for _, err := range l.Generate(ctx, req) {
		last = err
	}
	return last
}

// wantAnswer reads an answer and checks its parts.
func wantAnswer(t *testing.T, l providers.LLM, req providers.LLMRequest) {
	t.Helper()
	answered := false
	ids := map[string]bool{}
	for delta, err := range l.Generate(t.Context(), req) {
		if err != nil {
			t.Errorf("answer: %v", err)
			return
		}
		answered = answered || delta.Text != "" || len(delta.ToolCalls) > 0
		if delta.Provider == "" {
			t.Errorf("a delta names no provider: %+v", delta)
		}
		for _, call := range delta.ToolCalls {
			if call.Name == "" || call.ID == "" || ids[call.ID] {
				t.Errorf("a tool call without a name or an id of its own: %+v", call)
			}
			ids[call.ID] = true
			if !json.Valid([]byte(call.Arguments)) {
				t.Errorf("a tool call whose arguments are not JSON: %+v", call)
			}
		}
	}
	if !answered {
		t.Error("no text and no tool call")
	}
}
