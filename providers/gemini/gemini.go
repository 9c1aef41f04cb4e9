// Package gemini speaks to Google's Gemini by its own protocol, generateContent. Unlike
// its imitation of OpenAI's it carries the signatures that the newer models want back.
package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// DefaultAddress is Google's own, with its version part.
const DefaultAddress = "https://generativelanguage.googleapis.com/v1beta"

// Kind describes Gemini.
func Kind() service.Kind {
	return service.Kind{
		Type: "gemini", Title: "Google Gemini", Address: DefaultAddress, Extra: true,
		Env: []service.Env{{Field: service.Key, Name: "GEMINI_API_KEY"}}, Needs: []service.Field{service.Key},
		Models: map[service.Role][]string{service.LLM: {"gemini-3.5-flash-lite", "gemini-2.5-flash-lite", "gemini-2.5-flash"}},
		LLM:    func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// LLM is a Gemini. It may be used by any number of goroutines at once.
type LLM struct {
	*generation.Model
	w *wire
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*LLM, error) {
	address := strings.TrimRight(s.Address(nil, DefaultAddress), "/")
	if u, err := url.Parse(address); err == nil && u.Path == "" {
		address += "/v1beta"
	}
	o, at, err := generation.FromSection(s, service.LLM, strings.TrimSuffix(address, "/models"), Kind().Models[service.LLM][0])
	if err != nil {
		return nil, err
	}
	w := &wire{s: s, at: at, model: strings.TrimPrefix(o.Model, "models/"), account: o.Account}
	return &LLM{generation.New(o, w), w}, nil
}

// Capabilities says that the model can see: all of them can.
func (l *LLM) Capabilities() providers.Capabilities { return providers.Capabilities{Vision: true} }

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

func (w *wire) headers() []string { return []string{"x-goog-api-key", w.s.Key.Reveal()} }

// Request makes the request of a step.
func (w *wire) Request(ctx context.Context, req providers.LLMRequest) (*http.Request, error) {
	unsigned := ""
	if w.signs() {
		unsigned = skipSignature
	}
	system, contents := dialogue(req.Messages, generation.Owner(w.account.Name, w.model), unsigned)
	body := map[string]any{"contents": contents}
	if system != "" {
		body["systemInstruction"] = content{Parts: []part{{Text: system}}}
	}
	if len(req.Tools) > 0 {
		body["tools"] = []any{map[string]any{"functionDeclarations": declarations(req.Tools)}}
		if req.NoTools {
			body["toolConfig"] = map[string]any{"functionCallingConfig": map[string]any{"mode": "NONE"}}
		}
	}
	if config := w.generationConfig(); len(config) > 0 {
		body["generationConfig"] = config
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, "/models/"+url.PathEscape(w.model)+":streamGenerateContent?alt=sse", body, w.headers()...)
}

// skipSignature stands for a signature where another service has made a call: the newer
// models refuse a call that has none.
const skipSignature = "skip_thought_signature_validator"

// signs reports whether it is a model that wants the signatures of its calls back, as all do
// from Gemini 3 on. A name without a number stands for the newest.
func (w *wire) signs() bool {
	version, gemini := strings.CutPrefix(w.model, "gemini-")
	return gemini && !strings.HasPrefix(version, "1") && !strings.HasPrefix(version, "2")
}

// generationConfig holds the limits of an answer, and as little thinking as the model allows.
func (w *wire) generationConfig() map[string]any {
	config := map[string]any{}
	switch {
	case strings.HasPrefix(w.model, "gemini-2.5-flash"):
		config["thinkingConfig"] = map[string]any{"thinkingBudget": 0}
	case strings.HasPrefix(w.model, "gemini-2.5-pro"):
		config["thinkingConfig"] = map[string]any{"thinkingBudget": 128}
	case w.signs() && strings.Contains(w.model, "-pro"), w.signs() && w.refused.Has(minimal):
		config["thinkingConfig"] = map[string]any{"thinkingLevel": "LOW"}
	case w.signs():
		config["thinkingConfig"] = map[string]any{"thinkingLevel": "MINIMAL"}
	}
	if w.s.Temperature != nil {
		config["temperature"] = *w.s.Temperature
	}
	if w.s.MaxTokens > 0 {
		config["maxOutputTokens"] = w.s.MaxTokens
	}
	if w.refused.Has(thinking) {
		delete(config, "thinkingConfig")
	}
	return config
}

// What is remembered when the model refuses how it is told to think.
const (
	thinking = "thinking"
	minimal  = "as little as that"
)

// Answer begins to read an answer.
func (w *wire) Answer(providers.LLMRequest) generation.Answer {
	return &answer{owner: generation.Owner(w.account.Name, w.model)}
}

// Adapt leaves out of the next requests what the server has refused in this one.
func (w *wire) Adapt(r *transport.Refusal, said []byte) bool {
	if r.Status != http.StatusBadRequest {
		return false
	}
	for _, key := range []string{"thinking", "thinkingConfig", "thinking_config", "thinkingBudget", "thinking_budget", "thinkingLevel", "thinking_level"} {
		if generation.Names(said, key) { // at first the level may be too low
			return w.signs() && !strings.Contains(w.model, "-pro") && w.refused.Note(minimal) || w.refused.Note(thinking)
		}
	}
	return false
}
