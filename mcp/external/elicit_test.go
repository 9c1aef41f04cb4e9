package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// TestFilledIn: a form is accepted with its defaults where they are enough.
func TestFilledIn(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"name":{"type":"string","default":"Ann"},"age":{"type":"integer","default":30},"ok":{"type":"boolean","default":false}},"required":["name"]}`: `accept {"age":30,"name":"Ann","ok":false}`,
		`{"properties":{"a":{"default":""},"b":{"type":"string"}}}`:      `accept {"a":""}`,
		`{"properties":{"confirmed":{"type":"boolean"}}}`:                `accept {}`,
		`{"properties":{"a":{"default":1},"b":{}},"required":["a","b"]}`: `decline null`,
		`{"properties":{"a":{"default":null}},"required":["a"]}`:         `decline null`,
		`{"properties":{"a":{"default":1}},"required":["elsewhere"]}`:    `decline null`,
		`{"type":"object","properties":{}}`:                              `decline null`, // nothing to fill in: only whether a person agrees
		`null`:                                                           `decline null`, `{}`: `decline null`, `"form"`: `decline null`, `{"properties":[]}`: `decline null`, `{"properties":{"a":7}}`: `decline null`,
	} {
		var wire any
		if err := json.Unmarshal([]byte(schema), &wire); err != nil {
			t.Fatal(err)
		}
		r := filledIn(wire)
		if got := r.Action + " " + toJSON(t, r.Content); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}

// FuzzFilledIn: what is accepted has every required field, and no other than the form's.
func FuzzFilledIn(f *testing.F) {
	f.Add(`{"properties":{"a":{"default":1},"b":{}},"required":["a"]}`)
	f.Add(`{"properties":{"a":7},"required":"a"}`)
	f.Fuzz(func(t *testing.T, schema string) {
		var wire any
		if json.Unmarshal([]byte(schema), &wire) != nil {
			return
		}
		r := filledIn(wire)
		if r.Action != "accept" {
			if r.Action != "decline" || r.Content != nil {
				t.Fatalf("%s: %+v", schema, r)
			}
			return
		}
		raw, err := json.Marshal(wire)
		var form struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		if err != nil || json.Unmarshal(raw, &form) != nil {
			t.Fatalf("%s was accepted", schema)
		}
		for name := range r.Content {
			if _, ok := form.Properties[name]; !ok {
				t.Fatalf("%s: %q is no field", schema, name)
			}
		}
		for _, name := range form.Required {
			if _, ok := r.Content[name]; !ok {
				t.Fatalf("%s: %q is missing", schema, name)
			}
		}
	})
}

const (
	lampForm = `{"type":"object","properties":{"room":{"type":"string","default":"kitchen"},"level":{"type":"integer","default":7}},"required":["room"]}`
	nameForm = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
)

// asking is a server whose tools ask before they answer: by a request of their
// own where there is a session, else with a result that asks for more.
func asking(t *testing.T) *sdk.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "asks", Version: "1"}, nil)
	ask := func(name string, p sdk.ElicitParams) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if v := r.Session.InitializeParams(); v != nil && v.ProtocolVersion < "2026-07-28" {
				said, err := r.Session.Elicit(ctx, &p)
				if err != nil {
					return nil, err
				}
				return words(said.Action + " " + toJSON(t, said.Content)), nil
			}
			if said, ok := r.Params.InputResponses["q"].(*sdk.ElicitResult); ok {
				if r.Params.RequestState != "sealed" {
					return nil, errors.New("the state was lost")
				}
				return words(said.Action + " " + toJSON(t, said.Content)), nil
			}
			return &sdk.CallToolResult{RequestState: "sealed", InputRequests: sdk.InputRequestMap{"q": &p}}, nil
		})
	}
	ask("lamp", sdk.ElicitParams{Mode: "form", Message: "which lamp, sesame99?", RequestedSchema: json.RawMessage(lampForm)})
	ask("name", sdk.ElicitParams{Mode: "form", Message: "who are you?", RequestedSchema: json.RawMessage(nameForm)})
	ask("wrong", sdk.ElicitParams{Mode: "form", Message: "?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"default":"y"}}}`)})
	ask("visit", sdk.ElicitParams{Mode: "url", Message: "open this", URL: "https://example.org/", ElicitationID: "1"})
	return s
}

// TestQuestions: with the setting, what a server asks is answered with its
// defaults or declined, over both handshakes; without, it is an error that says
// what is the matter. The call ends each time.
func TestQuestions(t *testing.T) {
	for _, protocol := range []string{"auto", "legacy"} {
		for elicitation, want := range map[string]map[string]string{
			"defaults": {"lamp": `accept {"level":7,"room":"kitchen"}`, "name": "decline null", "wrong": "does not match", "visit": "nobody here opens an address"},
			"":         {"lamp": "", "name": "", "wrong": "", "visit": ""},
			"decline":  {"lamp": ""},
		} {
			t.Run(fmt.Sprintf("%s %q", protocol, elicitation), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { questions(t, protocol, elicitation, want) })
			})
		}
	}
}

func questions(t *testing.T, protocol, elicitation string, want map[string]string) {
	t.Helper()
	var log record
	p := newPipeNet()
	if protocol == "legacy" {
		p.serve(t, streamable(t, asking(t)))
	} else {
		p.serve(t, modern(t, asking(t)))
	}
	e := Entry{URL: "http://tools.test/mcp?key=sesame99", Type: "http", Protocol: protocol, Elicitation: elicitation}
	s := dialled(config(t, e), p, ServerOptions{Log: log.logger()})
	running(t, s)
	for tool, text := range want {
		if tool == "visit" && protocol == "legacy" {
			text = "" // the server itself sees that we do not do it
		}
		got, err := s.CallTool(t.Context(), tool, nil)
		failed, isTool := errors.AsType[*mcp.ToolError](err)
		switch {
		case elicitation == "defaults" && slices.Contains([]string{"lamp", "name"}, tool):
			if err != nil || got != text {
				t.Errorf("%s: %v, %v; want %s", tool, got, err, text)
			}
		case !isTool || !strings.Contains(failed.Message, text):
			t.Errorf("%s: %v, %v; want an error with %q", tool, got, err, text)
		case elicitation != "defaults" && protocol == "auto" && failed != errQuestion:
			t.Errorf("%s: %v", tool, err)
		}
	}
	if elicitation == "defaults" {
		log.has(t, "mcp server asks a person", "answer=accept", "answer=decline", "which lamp")
		if strings.Contains(log.String(), "sesame99?") {
			t.Errorf("the log shows a secret:\n%s", log.String())
		}
	}
	if !s.IsReady() {
		t.Error("the questions have ended the session")
	}
}

// TestAskedWhenNotDeclared: a server is told only with the setting that there
// are answers.
func TestAskedWhenNotDeclared(t *testing.T) {
	for elicitation, declared := range map[string]bool{"": false, "decline": false, "defaults": true} {
		synctest.Test(t, func(t *testing.T) {
			p, peer := newPipeNet(), tools(t)
			p.serve(t, streamable(t, peer))
			s := dialled(config(t, Entry{URL: "http://tools.test/mcp", Type: "http", Protocol: "legacy", Elicitation: elicitation}), p, ServerOptions{})
			running(t, s)
			seen := 0
			for session := range peer.Sessions() {
				c := session.InitializeParams().Capabilities
				if seen++; (c.Elicitation != nil) != declared || declared && (c.Elicitation.Form == nil || c.Elicitation.URL != nil) {
					t.Errorf("%q: %+v", elicitation, c)
				}
			}
			if seen != 1 {
				t.Errorf("%d sessions", seen)
			}
		})
	}
}
