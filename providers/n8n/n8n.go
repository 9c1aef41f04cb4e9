// Package n8n talks with workflows of n8n, by their webhook or chat trigger.
package n8n

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Kind describes n8n. Its base_url is the whole address of a webhook. What a key is for is
// the workflow's choice: a token, or app_id and api_secret for a user and his password.
func Kind() service.Kind {
	return service.Kind{
		Type: "n8n", Title: "n8n", Extra: true,
		More: []service.Setting{{Name: "input"}, {Name: "session"}},
		LLM:  func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing: that would run the workflow.
func New(s service.Section) (*platform.Model, error) {
	if s.BaseURL == "" {
		return nil, fmt.Errorf("%s: base_url: it must be the address of the workflow's webhook", s.Name)
	}
	o, at, err := generation.FromSection(s, service.LLM, s.BaseURL, "workflow")
	if err != nil {
		return nil, err
	}
	at.Base = s.BaseURL // with a slash at its end, if it has one
	o.Lines, o.JSON, o.Plain = true, true, true
	return platform.New(platform.Options{Options: o, Can: providers.Capabilities{OwnTools: true}, Log: s.Log}, &wire{s, at}), nil
}

// wire makes the requests.
type wire struct {
	s  service.Section
	at generation.Endpoint
}

// Request makes the request of a turn, as that of a chat. Other webhooks find in it what
// they want.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	body := map[string]any{
		"action": "sendMessage", w.s.Text("session", "sessionId"): t.Own, w.s.Text("input", "chatInput"): t.NewestText(),
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, "", body, "Authorization", w.authorization())
}

// authorization returns what the webhook may ask for; "" for nothing.
func (w *wire) authorization() string {
	switch {
	case w.s.ID != "" && w.s.Secret != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(w.s.ID+":"+w.s.Secret.Reveal()))
	case w.s.Key != "":
		return "Bearer " + w.s.Key.Reveal()
	}
	return ""
}

// Answer begins to read an answer.
func (w *wire) Answer(*platform.Turn) generation.Answer { return &answer{} }

// Stop makes no request: n8n ends no run because nobody reads.
func (w *wire) Stop(context.Context, *platform.Turn) (*http.Request, error) { return nil, nil }

// Judge knows a workflow that is not active.
func (w *wire) Judge(r *transport.Refusal) bool {
	if strings.Contains(r.Text, "not registered") {
		r.Kind = providers.BadRequest
	}
	return false
}
