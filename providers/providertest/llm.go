package providertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
)

// Part is a piece of a scripted answer.
type Part struct {
	Delay time.Duration   // before it
	Delta providers.Delta // its Provider is filled in
	Err   error           // ends the stream
	Hang  bool            // nothing more until the context ends
}

// Step is the script of one Generate.
type Step []Part

// Say returns a step that answers with these pieces of text, at once.
func Say(pieces ...string) Step {
	var step Step
	for _, text := range pieces {
		step = append(step, Part{Delta: providers.Delta{Text: text}})
	}
	return step
}

// Call returns a step that calls these tools, at once.
func Call(calls ...providers.ToolCall) Step {
	var step Step
	for _, call := range calls {
		step = append(step, Part{Delta: providers.Delta{ToolCalls: []providers.ToolCall{call}}})
	}
	return step
}

// Fail returns a step that fails at once.
func Fail(err error) Step { return Step{{Err: err}} }

// After returns the same step, each of its parts later by d.
func (s Step) After(d time.Duration) Step {
	s = slices.Clone(s)
	for i := range s {
		s[i].Delay += d
	}
	return s
}

// Asked is one step as a fake model saw it.
type Asked struct {
	Request   providers.LLMRequest
	Left      bool // the consumer left the loop
	Cancelled bool // the context ended before the end
	Ended     bool // the loop is over, in whatever way
}

// LLM is a fake language model.
type LLM struct {
	Label  string                              // its name; "fake-llm" if empty
	Script []Step                              // one for each call in order; the last one for all further ones
	Answer func(req providers.LLMRequest) Step // in place of Script
	Last   bool                                // it is a last resort, not a language model
	Can    providers.Capabilities

	mu    sync.Mutex
	asked []*Asked
}

// Name returns the label.
func (l *LLM) Name() string { return cmp.Or(l.Label, "fake-llm") }

// LastResort reports whether it is to be asked only when all others have failed.
func (l *LLM) LastResort() bool { return l.Last }

// Capabilities returns what Can says.
func (l *LLM) Capabilities() providers.Capabilities { return l.Can }

// Asked returns all calls so far, as they stand now.
func (l *LLM) Asked() []Asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return copies(l.asked)
}

// Generate plays the next step.
func (l *LLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		asked, step := l.begin(req)
		defer l.note(func() { asked.Ended = true })
		for _, part := range step {
			err := pause(ctx, part.Delay)
			if err == nil && part.Hang {
				<-ctx.Done()
				err = ctx.Err()
			}
			if err != nil {
				l.note(func() { asked.Cancelled = true })
				yield(providers.Delta{}, err)
				return
			}
			if part.Err != nil {
				yield(providers.Delta{}, part.Err)
				return
			}
			part.Delta.Provider = l.Name()
			part.Delta.Fallback = part.Delta.Fallback || l.Last && part.Delta.Text != ""
			if !yield(part.Delta, nil) {
				l.note(func() { asked.Left = true })
				return
			}
		}
	}
}

// begin records a call and finds its script.
func (l *LLM) begin(req providers.LLMRequest) (*Asked, Step) {
	req.Messages, req.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
	l.mu.Lock()
	asked := &Asked{Request: req}
	step := pick(l.Script, len(l.asked))
	l.asked = append(l.asked, asked)
	l.mu.Unlock()
	if l.Answer != nil {
		step = l.Answer(req)
	}
	return asked, step
}

// note changes a record.
func (l *LLM) note(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

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
