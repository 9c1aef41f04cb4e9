package openai

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/transport"
)

// LLM is a language model behind chat/completions. A server that is down or busy is asked
// again as long as nothing was yielded; a key of ours that it refuses is left out from then on.
type LLM struct {
	*generation.Model
	o Options
}

// NewLLM checks the settings and makes the model's client. It asks the server nothing.
func NewLLM(o Options) (*LLM, error) {
	o, err := o.prepare()
	if err != nil {
		return nil, err
	}
	return o.model(0), nil
}

// model makes the client. drain is how long it waits for the end of a finished stream; 0 is the usual time.
func (o Options) model(drain time.Duration) *LLM {
	return &LLM{generation.New(generation.Options{
		Account: o.account(), Model: o.Model, Client: o.HTTPClient, Retries: max(o.Retries, 0),
		First: o.Timeouts.FirstToken, Next: o.Timeouts.NextToken, Drain: drain,
	}, &wire{o: o}), o}
}

// Capabilities says whether the model can see, if the settings say so.
func (l *LLM) Capabilities() providers.Capabilities {
	return providers.Capabilities{Vision: l.o.Vision}
}

// wire makes the requests. It may be used by any number of goroutines at once.
type wire struct {
	o       Options
	refused refusals

	unopened generation.Unopened
}

// Request makes the request of a step.
func (w *wire) Request(ctx context.Context, step providers.LLMRequest) (*http.Request, error) {
	raw, err := w.o.chatBody(step, &w.refused)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base()+"/chat/completions", bytes.NewReader(raw))
	if err != nil {
		return nil, transport.Refused(providers.BadRequest, "", "the address is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	w.o.authorize(req)
	return req, nil
}

// base returns where the server is.
func (w *wire) base() string {
	if w.refused.Has(noteVersion) {
		return w.o.versioned
	}
	return w.o.BaseURL
}

// Answer begins to read an answer.
func (w *wire) Answer(providers.LLMRequest) generation.Answer {
	a := &answer{owner: generation.Owner(w.o.Name, w.o.Model), mode: w.o.Quirks.Echo, unopened: &w.unopened}
	a.unopened.Expect(&a.think, w.o.Model)
	return a
}
