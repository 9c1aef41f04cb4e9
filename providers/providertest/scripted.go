package providertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// Scripted is a server that gives one answer to every request, and keeps the last one that
// had a body. Its fields are set and read while no request runs.
type Scripted struct {
	*httptest.Server

	Status int    // of the answer
	Reply  string // the answer
	Body   map[string]any
	Header http.Header
	Path   string // with the query

	mu sync.Mutex // guards what is kept while requests run
}

// Script starts a server that answers with that text, of a media type, until the test ends.
func Script(t *testing.T, media, reply string) *Scripted {
	t.Helper()
	s := &Scripted{Status: http.StatusOK, Reply: reply}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			var body map[string]any
			_ = json.Unmarshal(raw, &body)
			s.mu.Lock()
			s.Body, s.Header, s.Path = body, r.Header, r.URL.RequestURI()
			s.mu.Unlock()
		}
		w.Header().Set("Content-Type", media)
		if s.Status != http.StatusOK {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(s.Status)
		_, _ = io.WriteString(w, s.Reply)
	}))
	t.Cleanup(s.Close)
	return s
}

// scriptKey is the key of the sections of scripted servers; no error may show it.
const scriptKey = "sk-secret-key"

// Section returns the settings of a model at a path of the server, without retries.
func (s *Scripted) Section(path string) service.Section {
	none := 0
	return service.Section{Name: "x", Key: scriptKey, BaseURL: s.URL + path, Retries: &none}
}

// Refused checks what a model makes of a refusal, and that no secret is shown.
func (s *Scripted) Refused(t *testing.T, model func() providers.LLM, status int, reply string, kind providers.Kind, part string) {
	t.Helper()
	s.Status, s.Reply = status, reply
	_, err := ReadAnswer(t, model(), Hi())
	WantError(t, err, "x", kind)
	if err != nil && (!strings.Contains(err.Error(), part) || strings.Contains(err.Error(), scriptKey)) {
		t.Errorf("%v, want %q", err, part)
	}
}

// Answer is a whole answer of a model.
type Answer struct {
	Text, Thought string
	Calls         []providers.ToolCall
	Usage         providers.Usage
	Echo          providers.Echo
}

// ReadAnswer reads an answer to its end.
func ReadAnswer(t *testing.T, l providers.LLM, req providers.LLMRequest) (got Answer, failed error) {
	t.Helper()
	for d, err := range l.Generate(t.Context(), req) {
		got.Text, got.Thought, got.Calls, failed = got.Text+d.Text, got.Thought+d.Thought, append(got.Calls, d.ToolCalls...), err
		if d.Usage != (providers.Usage{}) {
			got.Usage = d.Usage
		}
		if d.Echo != (providers.Echo{}) {
			got.Echo = d.Echo
		}
	}
	return got, failed
}

// Hi returns the plainest request.
func Hi() providers.LLMRequest {
	return providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}}
}

// Dialogue returns a request with all that messages can have; the results of its calls follow them.
func Dialogue(echo, callEcho providers.Echo) providers.LLMRequest {
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

// WantJSON compares a part of a request's body with JSON.
func WantJSON(t *testing.T, got any, text string) {
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
