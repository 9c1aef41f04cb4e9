// Package ollama speaks to an Ollama server by its own chat protocol, which unlike its
// imitation of OpenAI's keeps the model loaded, sets the size of its context and switches
// reasoning off.
package ollama

import (
	"context"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// DefaultAddress is where Ollama listens on its own machine.
const DefaultAddress = "http://127.0.0.1:11434"

// What a section need not say.
const (
	keepAlive = "30m" // a household speaks again within that
	context8k = 8192  // tokens: the server's own default cuts our prompts silently
)

// Kind describes Ollama.
func Kind() service.Kind {
	return service.Kind{
		Type: "ollama", Title: "Ollama", Address: DefaultAddress, Free: true, Extra: true,
		Models: map[service.Role][]string{service.LLM: {"qwen3:4b", "qwen3:8b"}, service.Embed: embedders},
		More: []service.Setting{
			{Name: "keep_alive"}, {Name: "dimensions", Type: service.Number}, {Name: "num_ctx", Type: service.Number}, {Name: "think", Values: []string{"false", "true", "low", "medium", "high"}},
		},
		LLM:   func(s service.Section) (providers.LLM, error) { return New(s) },
		Embed: func(s service.Section) (providers.Embedder, error) { return NewEmbedder(s) },
	}
}

// LLM is a model of an Ollama server. It may be used by any number of goroutines at once.
type LLM struct {
	*generation.Model
	w *wire
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*LLM, error) {
	o, at, err := generation.FromSection(s, service.LLM, address(s), Kind().Models[service.LLM][0])
	if err != nil {
		return nil, err
	}
	o.Lines, o.JSON = true, true
	w := &wire{s: s, at: at, model: o.Model, account: o.Account}
	if v := think(s, o.Model); v != nil {
		w.think.Store(&v)
	}
	return &LLM{generation.New(o, w), w}, nil
}

// address returns that of the server of a section.
func address(s service.Section) string {
	at := strings.TrimRight(s.Address(nil, DefaultAddress), "/")
	for _, end := range []string{"/chat", "/api", "/v1"} { // as other programs want it
		at = strings.TrimSuffix(at, end)
	}
	return at
}

// Capabilities says whether the model can see.
func (l *LLM) Capabilities() providers.Capabilities {
	return providers.Capabilities{Vision: l.w.s.Vision}
}

// loadTime bounds how long a model may take to load.
const loadTime = time.Minute

// Warm has the server load the model, unless it was used a short time ago, so that the
// first words need not wait for it. It may take as long as that.
func (l *LLM) Warm(ctx context.Context) error {
	if !l.w.idle() {
		return nil
	}
	reqCtx, cancel := context.WithTimeoutCause(ctx, loadTime, transport.ErrStalled)
	defer cancel()
	if err := l.w.load(reqCtx); err != nil {
		l.w.used.Store(0) // the next one tries again
		return l.w.account.Wrap(ctx, reqCtx, "load", err)
	}
	return nil
}

// think returns the value of think: reasoning is off, where it can be.
func think(s service.Section, model string) any {
	switch v := s.Text("think", ""); {
	case v == "true":
		return true
	case v == "low" || v == "medium" || v == "high":
		return v
	case strings.HasPrefix(model, "gpt-oss"): // it cannot be switched off
		return "low"
	}
	return s.Flag("think", false)
}
