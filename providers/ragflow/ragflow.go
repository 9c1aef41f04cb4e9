// Package ragflow talks with the chat assistants and agents of RAGFlow.
package ragflow

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Kind describes RAGFlow. A section names an assistant or an agent.
func Kind() service.Kind {
	return service.Kind{
		Type: "ragflow", Title: "RAGFlow", Extra: true,
		Env:  []service.Env{{Field: service.Key, Name: "RAGFLOW_API_KEY"}},
		More: []service.Setting{{Name: "chat_id"}, {Name: "agent_id"}, {Name: "path"}},
		LLM:  func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*platform.Model, error) {
	w := &wire{s: s, chat: s.Text("chat_id", ""), agent: s.Text("agent_id", "")}
	switch {
	case s.BaseURL == "":
		return nil, fmt.Errorf("%s: base_url: it must be the address of RAGFlow", s.Name)
	case (w.chat == "") == (w.agent == ""):
		return nil, fmt.Errorf("%s: chat_id, agent_id: one of them must be set", s.Name)
	}
	address := strings.TrimSuffix(strings.TrimRight(s.BaseURL, "/"), "/api/v1")
	o, at, err := generation.FromSection(s, service.LLM, address, "assistant")
	if err != nil {
		return nil, err
	}
	w.at = at
	return platform.New(platform.Options{Options: o, Can: providers.Capabilities{OwnTools: true}, Log: s.Log}, w), nil
}

// wire makes the requests.
type wire struct {
	s           service.Section
	at          generation.Endpoint
	chat, agent string // one of them is set
}

// Request makes the request of a turn.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	path, body := "/api/v1/chat/completions", map[string]any{"stream": true}
	if w.agent != "" {
		path = "/api/v1/agents/chat/completions"
		body["agent_id"], body["query"] = w.agent, t.NewestText()
	} else {
		body["chat_id"], body["question"] = w.chat, t.NewestText()
	}
	if t.Talk != "" {
		body["session_id"] = t.Talk
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	path = strings.NewReplacer("{chat_id}", w.chat, "{agent_id}", w.agent).Replace(w.s.Text("path", path))
	return w.at.Post(ctx, path, body, "Authorization", "Bearer "+w.s.Key.Reveal())
}

// Answer begins to read an answer.
func (w *wire) Answer(t *platform.Turn) generation.Answer { return &answer{turn: t} }

// Stop makes no request: RAGFlow has none for it.
func (w *wire) Stop(context.Context, *platform.Turn) (*http.Request, error) { return nil, nil }

// Judge puts the kind of a refusal right by RAGFlow's codes, and knows a session that is gone.
func (w *wire) Judge(r *transport.Refusal) bool {
	said := strings.ToLower(r.Text)
	switch r.Code {
	case "109", "401":
		r.Kind = providers.Unauthorized
	case "101", "102", "103":
		r.Kind = providers.BadRequest
		return strings.Contains(said, "session")
	case "100", "500":
		r.Kind = providers.Unavailable
	}
	switch {
	case strings.Contains(said, "rate limit"), strings.Contains(said, "too many requests"):
		r.Kind = providers.RateLimited
	case strings.Contains(said, "insufficient"), strings.Contains(said, "arrear"), strings.Contains(said, "balance"), strings.Contains(said, "quota"):
		r.Kind = providers.NoCredit
	}
	return false
}
