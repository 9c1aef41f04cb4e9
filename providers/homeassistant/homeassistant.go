// Package homeassistant talks with Home Assistant's conversation agents, who control the
// home.
package homeassistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"
	"time"

	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	address = "http://homeassistant.local:8123"
	idle    = 5 * time.Minute // after which Home Assistant forgets a dialogue
)

// Kind describes Home Assistant.
func Kind() service.Kind {
	return service.Kind{
		Type: "home-assistant", Title: "Home Assistant", Address: address, Extra: true,
		Env:  []service.Env{{Field: service.Key, Name: "HASS_TOKEN"}}, // that it is there does not mean that a home is to be the model
		More: []service.Setting{{Name: "agent_id"}, {Name: "language"}, {Name: "pass_on", Type: service.Flag}, {Name: "pipeline"}},
		LLM:  func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*platform.Model, error) {
	base := strings.TrimSuffix(strings.TrimRight(s.Address(nil, address), "/"), "/api")
	o, at, err := generation.FromSection(s, service.LLM, base, "conversation")
	if err != nil {
		return nil, err
	}
	phrases, err := prompts.Load("")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	o.Lines, o.JSON = true, true
	w := &wire{s: s, at: at, phrases: phrases, pipeline: s.Text("pipeline", "")}
	if w.pipeline != "" {
		dialer, err := transport.NewDialer(transport.DialerOptions{Account: o.Account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		client := *o.Client
		client.Transport = &sockets{dialer, s.Key, cmp.Or(client.Transport, http.DefaultTransport)}
		o.Client, w.at.Client = &client, &client
	}
	return platform.New(platform.Options{Options: o, Can: providers.Capabilities{OwnTools: true}, Idle: idle, Log: s.Log}, w), nil
}

// wire makes the requests.
type wire struct {
	s        service.Section
	at       generation.Endpoint
	phrases  *prompts.Set
	pipeline string // by which the answer is streamed; "": it comes in one piece
}

// Request makes the request of a turn.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	if w.pipeline != "" {
		return w.run(ctx, t)
	}
	body := map[string]any{"text": t.NewestText()}
	if lang := w.s.Text("language", t.Language); lang == "zh" { // it is asked for the country, too
		body["language"] = "zh-cn"
	} else if lang != "" {
		body["language"] = lang
	}
	if agent := w.s.Text("agent_id", ""); agent != "" {
		body["agent_id"] = agent
	}
	if t.Talk != "" {
		body["conversation_id"] = t.Talk
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, "/api/conversation/process", body, "Authorization", "Bearer "+w.s.Key.Reveal())
}

// Stop makes no request: what was done is done.
func (w *wire) Stop(context.Context, *platform.Turn) (*http.Request, error) { return nil, nil }

// Judge knows of no codes. A dialogue that is gone is begun anew by Home Assistant itself.
func (w *wire) Judge(*transport.Refusal) bool { return false }

// Answer begins to read an answer, which comes in one piece unless it is streamed.
func (w *wire) Answer(t *platform.Turn) generation.Answer {
	if w.pipeline != "" {
		return &stream{w: w, turn: t}
	}
	return &platform.Whole{Read: func(body []byte, give generation.Give) error {
		said, err := w.read(body, t)
		if err == nil {
			give(providers.Delta{Text: said})
		}
		return err
	}}
}

// reply is the answer of an agent.
type reply struct {
	Talk     string `json:"conversation_id"`
	Response *struct {
		Type   string `json:"response_type"`
		Speech struct {
			Plain, SSML struct {
				Speech string `json:"speech"`
			}
		} `json:"speech"`
		Data struct {
			Code string `json:"code"`
		} `json:"data"`
	} `json:"response"`
}

// read returns what is to be said. What Home Assistant has not understood is a failure, if
// the settings want the next member of the chain to be asked then.
func (w *wire) read(body []byte, t *platform.Turn) (string, error) {
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return "", fmt.Errorf("the reply is not the JSON expected: %w", err)
	}
	if r.Response == nil {
		if fault := generation.FaultOf(body); fault != nil {
			return "", fault.Refusal()
		}
		return "", errors.New("the reply holds no response")
	}
	t.Talk = r.Talk
	said := strings.TrimSpace(cmp.Or(r.Response.Speech.Plain.Speech, plain(r.Response.Speech.SSML.Speech)))
	if failed := r.Response.Type == "error"; failed && (said == "" || w.s.Flag("pass_on", false)) {
		return "", transport.Refused(providers.BadRequest, cmp.Or(r.Response.Data.Code, "unknown"), cmp.Or(said, "it could not do it"))
	}
	if said == "" { // after something was done
		said = w.phrases.Phrase(prompts.OK, t.Language)
	}
	return said, nil
}

// plain takes the tags out of SSML.
func plain(ssml string) string {
	var out strings.Builder
	for rest := ssml; rest != ""; {
		before, after, _ := strings.Cut(rest, "<")
		out.WriteString(before + " ")
		_, rest, _ = strings.Cut(after, ">")
	}
	return strings.Join(strings.Fields(html.UnescapeString(out.String())), " ")
}
