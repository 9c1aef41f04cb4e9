// Package anthropic speaks Anthropic's Messages protocol, with Anthropic and with the
// vendors that offer it beside their own.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// DefaultAddress is Anthropic's own, without its version part.
const DefaultAddress = "https://api.anthropic.com"

const (
	version   = "2023-06-01"
	maxTokens = 1024 // a limit is demanded; an answer that is spoken is shorter
)

// Kind describes Anthropic.
func Kind() service.Kind {
	return service.Kind{
		Type: "anthropic", Title: "Anthropic Claude", Address: DefaultAddress, Extra: true,
		Env: []service.Env{{Field: service.Key, Name: "ANTHROPIC_API_KEY"}}, Needs: []service.Field{service.Key},
		Models: map[service.Role][]string{service.LLM: {"claude-haiku-4-5", "claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"}},
		More:   []service.Setting{{Name: "version"}, {Name: "cache", Type: service.Flag}},
		LLM:    func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// LLM is a Claude, or what speaks like one. It may be used by any number of goroutines at once.
type LLM struct {
	*generation.Model
	w *wire
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*LLM, error) {
	address := strings.TrimRight(s.Address(nil, DefaultAddress), "/")
	for _, end := range []string{"/messages", "/v1"} { // as other programs want it
		address = strings.TrimSuffix(address, end)
	}
	o, at, err := generation.FromSection(s, service.LLM, address, Kind().Models[service.LLM][0])
	if err != nil {
		return nil, err
	}
	w := &wire{s: s, at: at, model: o.Model, account: o.Account}
	return &LLM{generation.New(o, w), w}, nil
}

// Capabilities says that the model can see: all of them can.
func (l *LLM) Capabilities() providers.Capabilities { return providers.Capabilities{Vision: true} }

// Warm opens a connection for the next request, if none waits for it already.
func (l *LLM) Warm(ctx context.Context) error {
	return l.w.account.Warm(ctx, l.w.at.Client, func(ctx context.Context) (*http.Response, error) {
		return l.w.at.Head(ctx, "/v1/models", l.w.headers()...)
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
	return []string{"x-api-key", w.s.Key.Reveal(), "anthropic-version", w.s.Text("version", version)}
}

// Request makes the request of a step.
func (w *wire) Request(ctx context.Context, req providers.LLMRequest) (*http.Request, error) {
	system, messages := dialogue(req.Messages, generation.Owner(w.account.Name, w.model))
	body := map[string]any{
		"model": w.model, "max_tokens": maxTokens, "stream": true, "messages": messages,
		"thinking": map[string]any{"type": "disabled"},
	}
	if w.s.MaxTokens > 0 {
		body["max_tokens"] = w.s.MaxTokens
	}
	if system != "" {
		body["system"] = system
	}
	if len(req.Tools) > 0 && (!req.NoTools || !w.refused.Has("tool_choice")) {
		body["tools"] = tools(req.Tools)
		if req.NoTools {
			body["tool_choice"] = map[string]any{"type": "none"}
		}
	}
	if w.s.Temperature != nil {
		body["temperature"] = *w.s.Temperature
	}
	if w.s.Flag("cache", true) { // of tools, system prompt and dialogue, as far as they are the same as before
		body["cache_control"] = map[string]any{"type": "ephemeral"}
	}
	w.refused.Drop(body)
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, "/v1/messages", body, w.headers()...)
}

// Answer begins to read an answer.
func (w *wire) Answer(providers.LLMRequest) generation.Answer {
	return &answer{owner: generation.Owner(w.account.Name, w.model)}
}

// Adapt leaves out of the next requests what the server has refused in this one.
func (w *wire) Adapt(r *transport.Refusal, said []byte) bool {
	return w.refused.Learn(r.Status, said, w.s.Extra, "thinking", "cache_control", "temperature", "tool_choice")
}
