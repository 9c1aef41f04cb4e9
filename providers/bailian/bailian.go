// Package bailian talks with the applications of Alibaba's Model Studio (Bailian).
package bailian

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

func regions() map[string]string {
	return map[string]string{"cn": "https://dashscope.aliyuncs.com", "intl": "https://dashscope-intl.aliyuncs.com"}
}

// Kind describes Bailian's applications.
func Kind() service.Kind {
	return service.Kind{
		Type: "bailian", Title: "Alibaba Bailian", Regions: regions(), Address: regions()["cn"], Extra: true,
		Env:   []service.Env{{Field: service.Key, Name: "DASHSCOPE_API_KEY"}, {Field: service.ID, Name: "BAILIAN_APP_ID"}},
		Needs: []service.Field{service.Key, service.ID},
		More:  []service.Setting{{Name: "memory_id"}},
		LLM:   func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*platform.Model, error) {
	if s.ID == "" {
		return nil, fmt.Errorf("%s: app_id: it must be that of the application", s.Name)
	}
	address := strings.TrimSuffix(strings.TrimRight(s.Address(regions(), regions()["cn"]), "/"), "/api/v1")
	o, at, err := generation.FromSection(s, service.LLM, address, "application")
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

// Request makes the request of a turn. The further keys of the section go into parameters.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	input := map[string]any{"prompt": t.NewestText()}
	if t.Talk != "" {
		input["session_id"] = t.Talk
	}
	if id := w.s.Text("memory_id", ""); id != "" {
		input["memory_id"] = id
	}
	parameters := map[string]any{"incremental_output": true, "has_thoughts": false}
	if err := generation.Merge(parameters, w.s.Extra); err != nil {
		return nil, err
	}
	if biz, ok := parameters["biz_params"]; ok {
		delete(parameters, "biz_params")
		input["biz_params"] = biz
	}
	return w.at.Post(ctx, "/api/v1/apps/"+url.PathEscape(w.s.ID)+"/completion",
		map[string]any{"input": input, "parameters": parameters, "debug": map[string]any{}},
		"Authorization", "Bearer "+w.s.Key.Reveal(), "X-DashScope-SSE", "enable", "Accept", "text/event-stream")
}

// Answer begins to read an answer.
func (w *wire) Answer(t *platform.Turn) generation.Answer {
	whole := w.s.Extra["incremental_output"] == false
	return &answer{turn: t, whole: whole}
}

// Stop makes no request: the end of the connection stops an answer.
func (w *wire) Stop(context.Context, *platform.Turn) (*http.Request, error) { return nil, nil }

// Judge knows a session that is gone.
func (w *wire) Judge(r *transport.Refusal) bool {
	said := strings.ToLower(r.Text)
	return strings.Contains(said, "session") && r.Kind != providers.Unauthorized && r.Kind != providers.RateLimited
}

// event is one of the stream.
type event struct {
	Output struct {
		Text    string `json:"text"`
		Finish  string `json:"finish_reason"` // the text "null" until the end
		Session string `json:"session_id"`
	} `json:"output"`
	Usage struct {
		Models []struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		} `json:"models"`
	} `json:"usage"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// answer reads one answer.
type answer struct {
	turn  *platform.Turn
	whole bool // each event holds all so far
	said  int  // bytes of that
}

// add returns what an event adds to the answer.
func (a *answer) add(text string) string {
	if !a.whole {
		return text
	}
	added := strings.ToValidUTF8(text[min(a.said, len(text)):], "") // should a text have been changed
	a.said = max(a.said, len(text))
	return added
}

// Event reads one event.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	var ev event
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if e.Name == "error" || ev.Code != "" && ev.Message != "" {
		if fault := generation.FaultOf(e.Data); fault != nil {
			return false, fault.Refusal()
		}
		return false, transport.Refused(providers.Unavailable, ev.Code, cmp.Or(ev.Message, "the application has failed"))
	}
	a.turn.Talk = cmp.Or(ev.Output.Session, a.turn.Talk)
	var cost providers.Usage
	for _, m := range ev.Usage.Models {
		cost.Prompt, cost.Completion = cost.Prompt+m.Input, cost.Completion+m.Output
	}
	give(providers.Delta{Text: a.add(ev.Output.Text), Usage: cost})
	return ev.Output.Finish != "" && ev.Output.Finish != "null", nil
}

// End has nothing left to give.
func (a *answer) End(generation.Give) error { return nil }
