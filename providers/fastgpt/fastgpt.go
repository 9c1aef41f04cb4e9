// Package fastgpt talks with the apps of FastGPT, by OpenAI's format and a name for the
// dialogue.
package fastgpt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// DefaultAddress is that of FastGPT's own cloud.
const DefaultAddress = "https://cloud.fastgpt.cn"

// Kind describes FastGPT.
func Kind() service.Kind {
	return service.Kind{
		Type: "fastgpt", Title: "FastGPT", Address: DefaultAddress, Extra: true,
		Env: []service.Env{{Field: service.Key, Name: "FASTGPT_API_KEY"}}, Needs: []service.Field{service.Key},
		More: []service.Setting{{Name: "path"}},
		LLM:  func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*platform.Model, error) {
	address := strings.TrimRight(s.Address(nil, DefaultAddress), "/")
	for _, end := range []string{"/chat/completions", "/v1", "/api"} { // all of these are in use
		address = strings.TrimRight(strings.TrimSuffix(address, end), "/")
	}
	o, at, err := generation.FromSection(s, service.LLM, address, "app")
	if err != nil {
		return nil, err
	}
	return platform.New(platform.Options{Options: o, Can: providers.Capabilities{OwnTools: true}, Log: s.Log}, &wire{s, at}), nil
}

// wire makes the requests.
type wire struct {
	s  service.Section
	at generation.Endpoint
}

// Request makes the request of a turn. The app keeps the dialogue under our name for it.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	body := map[string]any{
		"chatId": t.Own, "stream": true, "detail": false,
		"messages": []any{map[string]any{"role": "user", "content": t.NewestText()}},
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, w.s.Text("path", "/api/v1/chat/completions"), body, "Authorization", "Bearer "+w.s.Key.Reveal())
}

// Answer begins to read an answer.
func (w *wire) Answer(*platform.Turn) generation.Answer { return &answer{} }

// Stop makes no request: only the end of the connection stops an answer.
func (w *wire) Stop(context.Context, *platform.Turn) (*http.Request, error) { return nil, nil }

// Judge puts the kind of a refusal right by FastGPT's codes.
func (w *wire) Judge(r *transport.Refusal) bool {
	said := strings.ToLower(r.Code + " " + r.Text)
	switch {
	case r.Code == "514", strings.Contains(said, "unauthapikey"), strings.Contains(said, "unauthorization"), strings.Contains(said, "key is error"):
		r.Kind = providers.Unauthorized
	case r.Code == "510", strings.Contains(said, "insufficient"), strings.Contains(said, "notenough"), strings.Contains(said, "not enough"), strings.Contains(said, "balance"):
		r.Kind = providers.NoCredit
	case r.Code == "511", r.Code == "512", strings.Contains(said, "unauthmodel"), strings.Contains(said, "unexist"), strings.Contains(said, "not exist"):
		r.Kind = providers.BadRequest
	}
	return false
}

// chunk is an event of the stream: a piece of the answer, or a failure.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
			Thought string `json:"reasoning_content"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
	StatusText string `json:"statusText"`
	Message    string `json:"message"`
}

// answer reads one answer.
type answer struct{ finished bool }

// Event reads one event. Those of the app's steps pass.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if strings.TrimSpace(string(e.Data)) == sse.Done {
		return true, nil
	}
	switch e.Name {
	case "", "answer", "fastAnswer", "error":
	default:
		return false, nil
	}
	var c chunk
	if err := json.Unmarshal(e.Data, &c); err != nil && e.Name != "error" {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if fault := generation.FaultOf(e.Data); fault != nil || e.Name == "error" {
		return false, refusal(fault, &c)
	}
	give(providers.Delta{Usage: providers.Usage{Prompt: c.Usage.Prompt, Completion: c.Usage.Completion}})
	for _, choice := range c.Choices {
		a.finished = a.finished || choice.Finish != ""
		give(providers.Delta{Text: choice.Delta.Content, Thought: choice.Delta.Thought})
	}
	return false, nil
}

// refusal makes the error of an event.
func refusal(fault *generation.Fault, c *chunk) error {
	r := transport.Refused(providers.Unavailable, "", "")
	if fault != nil {
		r = fault.Refusal()
	}
	r.Text = cmp.Or(r.Text, c.Message, "the app has failed")
	if c.StatusText != "" && c.StatusText != r.Text {
		r.Text = c.StatusText + ": " + r.Text
	}
	return r
}

// EOF ends an answer: the last event may be missing.
func (a *answer) EOF(generation.Give) error {
	if !a.finished {
		return generation.ErrIncomplete
	}
	return nil
}

// End has nothing left to give.
func (a *answer) End(generation.Give) error { return nil }
