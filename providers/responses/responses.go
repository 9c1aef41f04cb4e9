// Package responses speaks OpenAI's Responses protocol, for models that are served by
// nothing else.
package responses

import (
	"context"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// DefaultAddress is OpenAI's own, with its version part.
const DefaultAddress = "https://api.openai.com/v1"

// Kind describes the protocol, as OpenAI serves it.
func Kind() service.Kind {
	return service.Kind{
		Type: "openai-responses", Title: "OpenAI Responses", Address: DefaultAddress, Extra: true,
		Env: []service.Env{{Field: service.Key, Name: "OPENAI_API_KEY"}}, Needs: []service.Field{service.Key},
		Models: map[service.Role][]string{service.LLM: {"gpt-5.4-nano", "gpt-5.4-mini", "gpt-4.1-mini"}},
		LLM:    func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// LLM is a model behind this protocol. It may be used by any number of goroutines at once.
type LLM struct {
	*generation.Model
	w *wire
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*LLM, error) {
	address := strings.TrimSuffix(strings.TrimRight(s.Address(nil, DefaultAddress), "/"), "/responses")
	o, at, err := generation.FromSection(s, service.LLM, address, Kind().Models[service.LLM][0])
	if err != nil {
		return nil, err
	}
	w := &wire{s: s, at: at, model: o.Model, account: o.Account}
	return &LLM{generation.New(o, w), w}, nil
}

// Capabilities says whether the model can see.
func (l *LLM) Capabilities() providers.Capabilities {
	return providers.Capabilities{Vision: l.w.s.Vision}
}

// Warm opens a connection for the next request, if none waits for it already.
func (l *LLM) Warm(ctx context.Context) error {
	return l.w.account.Warm(ctx, l.w.at.Client, func(ctx context.Context) (*http.Response, error) {
		return l.w.at.Head(ctx, "/models", l.w.headers()...)
	})
}

// wire makes the requests.
type wire struct {
	s       service.Section
	at      generation.Endpoint
	model   string
	account transport.Account
	refused generation.Memory
}

func (w *wire) headers() []string {
	if w.s.Key == "" {
		return nil
	}
	return []string{"Authorization", "Bearer " + w.s.Key.Reveal()}
}

// Request makes the request of a step. The service keeps nothing of it: what it wants back
// of its reasoning is in the dialogue.
func (w *wire) Request(ctx context.Context, req providers.LLMRequest) (*http.Request, error) {
	instructions, input := dialogue(req.Messages, generation.Owner(w.account.Name, w.model))
	body := map[string]any{
		"model": w.model, "input": input, "stream": true, "store": false,
		"stream_options": map[string]any{"include_obfuscation": false},
	}
	if instructions != "" {
		body["instructions"] = instructions
	}
	if len(req.Tools) > 0 && (!req.NoTools || !w.refused.Has("tool_choice")) {
		body["tools"] = tools(req.Tools)
		if req.NoTools {
			body["tool_choice"] = "none"
		}
	}
	if effort := effort(w.model); effort != "" {
		body["reasoning"] = map[string]any{"effort": effort}
		body["include"] = []string{"reasoning.encrypted_content"}
	}
	if w.s.Temperature != nil {
		body["temperature"] = *w.s.Temperature
	}
	if w.s.MaxTokens > 0 {
		body["max_output_tokens"] = w.s.MaxTokens
	}
	w.refused.Drop(body)
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, "/responses", body, w.headers()...)
}

// effort is the least that a model knows; "" for one that does not reason.
func effort(model string) string {
	switch {
	case strings.HasPrefix(model, "gpt-5."), strings.HasPrefix(model, "gpt-6"):
		return "none"
	case strings.HasPrefix(model, "gpt-5"):
		return "minimal"
	case strings.HasPrefix(model, "o1"), strings.HasPrefix(model, "o3"), strings.HasPrefix(model, "o4"):
		return "low"
	}
	return ""
}

// Answer begins to read an answer.
func (w *wire) Answer(providers.LLMRequest) generation.Answer {
	return &answer{owner: generation.Owner(w.account.Name, w.model)}
}

// Adapt leaves out of the next requests what the server has refused in this one.
func (w *wire) Adapt(r *transport.Refusal, said []byte) bool {
	return w.refused.Learn(r.Status, said, w.s.Extra, "reasoning", "include", "stream_options", "temperature", "tool_choice")
}
