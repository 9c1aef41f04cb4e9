package platform

import (
	"context"
	"errors"
	"net/http"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// step is a turn as the driver of models sees it.
type step struct {
	wire Wire
	turn *Turn
	m    *Model
}

// Request makes the request of the turn.
func (s *step) Request(ctx context.Context, _ providers.LLMRequest) (*http.Request, error) {
	if s.turn.NewestText() == "" {
		return nil, errors.New("the user has said nothing that could be sent")
	}
	s.turn.reset()
	return s.wire.Request(ctx, s.turn)
}

// Answer begins to read the answer of the turn.
func (s *step) Answer(providers.LLMRequest) generation.Answer {
	return &answer{Answer: s.wire.Answer(s.turn), s: s}
}

// Adapt never asks in another way: it puts the kind of the refusal right.
func (s *step) Adapt(r *transport.Refusal, _ []byte) bool {
	s.wire.Judge(r)
	return false
}

// answer notes when an answer is complete, and keeps thoughts apart from it.
type answer struct {
	generation.Answer
	s     *step
	think generation.ThinkFilter
}

// Event reads one event.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	complete, err := a.Answer.Event(e, a.filter(give))
	a.s.turn.complete = a.s.turn.complete || complete
	if r, ok := errors.AsType[*transport.Refusal](err); ok {
		a.s.wire.Judge(r)
	}
	return complete, err
}

// EOF reads the end of the stream.
func (a *answer) EOF(give generation.Give) error {
	ending, ok := a.Answer.(generation.Ending)
	if !ok {
		return generation.ErrIncomplete
	}
	err := ending.EOF(a.filter(give))
	a.s.turn.complete = err == nil
	if r, ok := errors.AsType[*transport.Refusal](err); ok {
		a.s.wire.Judge(r)
	}
	return err
}

// End gives what was held back.
func (a *answer) End(give generation.Give) error {
	if err := a.Answer.End(a.filter(give)); err != nil {
		return err
	}
	text, thought := a.think.Flush()
	give(providers.Delta{Text: text, Thought: thought, Echo: a.s.m.traceOf(a.s.turn)})
	return nil
}

// filter takes the thoughts out of the text that is given.
func (a *answer) filter(give generation.Give) generation.Give {
	return func(d providers.Delta) {
		if d.Text != "" {
			text, thought := a.think.Push(d.Text)
			d.Text, d.Thought = text, d.Thought+thought
		}
		give(d)
	}
}
