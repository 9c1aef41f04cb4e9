package providertest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
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

	mu    sync.Mutex
	asked []*Asked
}

// Name returns the label.
func (l *LLM) Name() string { return cmp.Or(l.Label, "fake-llm") }

// LastResort reports whether it is to be asked only when all others have failed.
func (l *LLM) LastResort() bool { return l.Last }

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
