package ollama

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// warmFor is how long a model that was used is taken to be loaded.
const warmFor = 4 * time.Minute

// wire makes the requests.
type wire struct {
	s       service.Section
	at      generation.Endpoint
	model   string
	account transport.Account
	think   atomic.Pointer[any] // the value of think; nil: it is not sent
	used    atomic.Int64        // when the model was asked last, in Unix nanoseconds
}

// bearer is for servers behind a proxy that wants a key.
func (w *wire) bearer() string {
	if w.s.Key == "" {
		return ""
	}
	return "Bearer " + w.s.Key.Reveal()
}

func (w *wire) keep() string { return w.s.Text("keep_alive", keepAlive) }

// idle reports whether the model may be unloaded by now, once.
func (w *wire) idle() bool {
	last, now := w.used.Load(), time.Now().UnixNano()
	return now-last > int64(warmFor) && w.used.CompareAndSwap(last, now)
}

// load asks for nothing but that the model is there.
func (w *wire) load(ctx context.Context) error {
	req, err := w.at.Post(ctx, "/api/chat", map[string]any{
		"model": w.model, "messages": []any{}, "keep_alive": w.keep(), "options": w.options(),
	}, "Authorization", w.bearer())
	if err != nil {
		return err
	}
	resp, err := w.at.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return transport.ReadRefusal(resp)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, transport.MaxErrorBody))
	return err
}

// options are the model's own; another size of the context would load it anew.
func (w *wire) options() map[string]any {
	o := map[string]any{"num_ctx": int(w.s.Number("num_ctx", context8k))}
	if w.s.Temperature != nil {
		o["temperature"] = *w.s.Temperature
	}
	if w.s.MaxTokens > 0 {
		o["num_predict"] = w.s.MaxTokens
	}
	return o
}

// Request makes the request of a step. A choice of tools is not understood, so that tools
// that must not be called are not listed.
func (w *wire) Request(ctx context.Context, req providers.LLMRequest) (*http.Request, error) {
	w.used.Store(time.Now().UnixNano())
	body := map[string]any{"model": w.model, "stream": true, "messages": messages(req.Messages), "keep_alive": w.keep(), "options": w.options()}
	if v := w.think.Load(); v != nil {
		body["think"] = *v
	}
	if len(req.Tools) > 0 && !req.NoTools {
		body["tools"] = tools(req.Tools)
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, "/api/chat", body, "Authorization", w.bearer())
}

// Answer begins to read an answer.
func (w *wire) Answer(providers.LLMRequest) generation.Answer { return &answer{} }

// Adapt leaves think out for a model that does not know it.
func (w *wire) Adapt(r *transport.Refusal, said []byte) bool {
	if r.Status != http.StatusBadRequest || !bytes.Contains(said, []byte("think")) {
		return false
	}
	return w.think.Swap(nil) != nil
}

// tools maps the tools.
func tools(specs []providers.ToolSpec) []any {
	out := make([]any, len(specs))
	for i, spec := range specs {
		out[i] = map[string]any{"type": "function", "function": map[string]any{
			"name": spec.Name, "description": spec.Description, "parameters": generation.Schema(spec.Parameters),
		}}
	}
	return out
}

// messages maps the dialogue. A tool's result names the tool.
func messages(from []providers.Message) []message {
	names := map[string]string{}
	out := make([]message, len(from))
	for i, m := range from {
		out[i] = message{Role: string(m.Role), Content: m.Content, CallID: m.ToolCallID, ToolName: names[m.ToolCallID]}
		for _, image := range m.Images {
			out[i].Images = append(out[i].Images, base64.StdEncoding.EncodeToString(image.Data))
		}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
			made := call{ID: c.ID}
			made.Function.Name, made.Function.Arguments = c.Name, generation.Object(c.Arguments)
			out[i].ToolCalls = append(out[i].ToolCalls, made)
		}
	}
	return out
}
