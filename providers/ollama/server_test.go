package ollama

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

// scripted is a server that gives the same answer to every request, and keeps the last body.
type scripted struct {
	*httptest.Server
	mu     sync.Mutex // guards what is below while requests run
	status int
	reply  string
	body   map[string]any
	header http.Header
	path   string
}

func serve(t *testing.T, reply string) *scripted {
	t.Helper()
	s := &scripted{status: http.StatusOK, reply: reply}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			var body map[string]any
			_ = json.Unmarshal(raw, &body)
			s.mu.Lock()
			s.body, s.header, s.path = body, r.Header, r.URL.RequestURI()
			s.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		if s.status != http.StatusOK {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.reply)
	}))
	t.Cleanup(s.Close)
	return s
}

// model makes one at the server.
func (s *scripted) model(t *testing.T, change func(*service.Section)) *LLM {
	t.Helper()
	none := 0
	section := service.Section{Name: "x", Key: "sk-secret-key", BaseURL: s.URL, Retries: &none}
	if change != nil {
		change(&section)
	}
	l, err := New(section)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.w.at.Client.CloseIdleConnections)
	return l
}

// all is a whole answer.
type all struct {
	text, thought string
	calls         []providers.ToolCall
	usage         providers.Usage
	echo          providers.Echo
}

func read(t *testing.T, l *LLM, req providers.LLMRequest) (got all, failed error) {
	t.Helper()
	for d, err := range l.Generate(t.Context(), req) {
		got.text, got.thought, got.calls, failed = got.text+d.Text, got.thought+d.Thought, append(got.calls, d.ToolCalls...), err
		if d.Usage != (providers.Usage{}) {
			got.usage = d.Usage
		}
		if d.Echo != (providers.Echo{}) {
			got.echo = d.Echo
		}
	}
	return got, failed
}

// talk holds all that a message can have; the results of its calls follow them.
func talk(echo, callEcho providers.Echo) providers.LLMRequest {
	return providers.LLMRequest{
		Messages: []providers.Message{
			{Role: providers.RoleSystem, Content: "be kind"},
			{Role: providers.RoleUser, Content: "look", Images: []providers.Image{{MIMEType: "image/png", Data: []byte("png")}}},
			{Role: providers.RoleAssistant, Content: "I see", Echo: echo, ToolCalls: []providers.ToolCall{
				{ID: "c1", Name: "lamp", Arguments: `{"on":true}`, Echo: callEcho}, {ID: "c 2", Name: "now", Arguments: "broken"},
			}},
			{Role: providers.RoleTool, ToolCallID: "c1", Content: "done"}, {Role: providers.RoleTool, ToolCallID: "c 2", Content: "9:00"},
			{Role: providers.RoleUser, Content: "and?"},
		},
		Tools: []providers.ToolSpec{{Name: "lamp", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}, {Name: "now"}},
	}
}

// want compares a part of a request's body with JSON.
func want(t *testing.T, got any, text string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	wanted, err := json.Marshal(value)
	if err != nil || string(raw) != string(wanted) {
		t.Errorf("got  %s\nwant %s, %v", raw, wanted, err)
	}
}

var ask = providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}}

// refused checks what becomes of a refusal, and that no secret is shown.
func (s *scripted) refused(t *testing.T, status int, reply string, kind providers.Kind, part string) {
	t.Helper()
	s.status, s.reply = status, reply
	_, err := read(t, s.model(t, nil), ask)
	providertest.WantError(t, err, "x", kind)
	if err != nil && (!strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "sk-secret-key")) {
		t.Errorf("%v, want %q", err, part)
	}
}
