// Package dify talks with the apps of Dify: chatbots, chatflows, agents and workflows.
package dify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// DefaultAddress is that of Dify's own cloud.
const DefaultAddress = "https://api.dify.ai/v1"

// The sorts of app that are asked in different ways.
const (
	chat       = "chat" // chatbots, chatflows and agents
	workflow   = "workflow"
	completion = "completion"
)

// Kind describes Dify.
func Kind() service.Kind {
	return service.Kind{
		Type: "dify", Title: "Dify", Address: DefaultAddress, Extra: true,
		Env: []service.Env{{Field: service.Key, Name: "DIFY_API_KEY"}}, Needs: []service.Field{service.Key},
		More: []service.Setting{
			{Name: "app", Values: []string{chat, "chatflow", "agent", workflow, completion}},
			{Name: "input"},  // of a workflow or a completion app: which of its inputs takes what the user says
			{Name: "output"}, // of a workflow: which of its outputs is the answer
		},
		LLM: func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*platform.Model, error) {
	address := strings.TrimRight(s.Address(nil, DefaultAddress), "/")
	if u, err := url.Parse(address); err == nil && u.Path == "" {
		address += "/v1"
	}
	o, at, err := generation.FromSection(s, service.LLM, address, chat)
	if err != nil {
		return nil, err
	}
	w := &wire{s: s, at: at, path: "/chat-messages", stop: "/chat-messages/"}
	switch app := s.Text("app", chat); app {
	case chat, "chatflow", "agent":
	case workflow:
		w.path, w.stop = "/workflows/run", "/workflows/tasks/"
	case completion:
		w.path, w.stop = "/completion-messages", "/completion-messages/"
	default:
		return nil, fmt.Errorf("%s: app: %q is none of chat, chatflow, agent, workflow, completion", s.Name, app)
	}
	return platform.New(platform.Options{Options: o, Can: providers.Capabilities{OwnTools: true}, Log: s.Log}, w), nil
}

// wire makes the requests.
type wire struct {
	s    service.Section
	at   generation.Endpoint
	path string
	stop string // path of the answers that can be stopped
}

func (w *wire) post(ctx context.Context, path string, body any) (*http.Request, error) {
	if w.s.Key == "" {
		return w.at.Post(ctx, path, body)
	}
	return w.at.Post(ctx, path, body, "Authorization", "Bearer "+w.s.Key.Reveal())
}

// workflow reports whether the app is one.
func (w *wire) workflow() bool { return w.path == "/workflows/run" }

// Request makes the request of a turn.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	inputs := map[string]any{}
	body := map[string]any{"inputs": inputs, "user": t.User, "response_mode": "streaming"}
	if w.path != "/chat-messages" { // they have no dialogue
		inputs[w.s.Text("input", "query")] = t.NewestText()
	} else {
		body["query"], body["conversation_id"], body["auto_generate_name"] = t.NewestText(), t.Talk, false
	}
	extra := w.s.Extra
	if more, ok := extra["inputs"].(map[string]any); ok { // beside ours
		if err := generation.Merge(inputs, more); err != nil {
			return nil, err
		}
		extra = without(extra, "inputs")
	}
	if err := generation.Merge(body, extra); err != nil {
		return nil, err
	}
	return w.post(ctx, w.path, body)
}

// without returns a map without a key.
func without(m map[string]any, key string) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// Answer begins to read an answer.
func (w *wire) Answer(t *platform.Turn) generation.Answer {
	return &answer{turn: t, workflow: w.workflow(), output: w.s.Text("output", "answer")}
}

// Stop makes the request that stops an answer. Dify stops nothing for another user.
func (w *wire) Stop(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	return w.post(ctx, w.stop+url.PathEscape(t.Run)+"/stop", map[string]any{"user": t.User})
}

// Judge puts the kind of a refusal right by Dify's codes.
func (w *wire) Judge(r *transport.Refusal) bool {
	switch r.Code {
	case "provider_quota_exceeded", "rate_limit_error": // asking again does not help
		r.Kind = providers.NoCredit
	case "too_many_requests":
		r.Kind = providers.RateLimited
	case "invalid_param", "app_unavailable", "not_chat_app", "not_workflow_app", "not_completion_app", "provider_not_initialize",
		"model_currently_not_support", "bad_request":
		r.Kind = providers.BadRequest
	case "completion_request_error":
		r.Kind = providers.Unavailable
	case "unauthorized":
		r.Kind = providers.Unauthorized
	}
	return (r.Status == http.StatusNotFound || r.Code == "not_found" || r.Code == "404") && strings.Contains(strings.ToLower(r.Text), "conversation")
}
