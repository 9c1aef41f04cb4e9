// Package ollamanative is a fake of Ollama's own protocol: chat with lines of JSON, thoughts, calls of
// tools in one piece, and vectors; errors are a text. It wants no key.
package ollamanative

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Mode names a way of answering.
type Mode int

// The modes.
const (
	Usual     Mode = iota
	Fails          // an error comes amid the text, with status 200
	Thinkless      // the model cannot think
	Toolless       // the model takes no tools
)

// fake is the server.
type fake struct {
	*servicetest.Server

	mode Mode
}

// New starts the server.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return NewMode(t, Usual)
}

// NewMode starts a server that answers in another way.
func NewMode(t testing.TB, mode Mode) *servicetest.Server {
	t.Helper()
	f := &fake{mode: mode}
	account := []servicetest.Fault{servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited}
	f.Server = servicetest.New(t, f.serve, slices.DeleteFunc(servicetest.ThinkFaults(), func(f servicetest.Fault) bool { return slices.Contains(account, f) })...)
	return f.Server
}

// request holds the members of a client's request.
type request struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
		Name    string `json:"tool_name"`
		Calls   []struct {
			Function struct {
				Name      string         `json:"name"`
				Arguments map[string]any `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		Images [][]byte `json:"images"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Stream  *bool           `json:"stream"`
	Think   json.RawMessage `json:"think"`
	Keep    json.RawMessage `json:"keep_alive"`
	Options map[string]any  `json:"options"`
}

type object = map[string]any

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body := f.Take(w, r)
	refuse := func(status int, words string) {
		f.Refuse(w, status, string(servicetest.JSON(object{"error": words}).Data))
	}
	var q request
	err := json.Unmarshal(body, &q)
	think := len(q.Think) > 0 && string(q.Think) != "false" && string(q.Think) != "null"
	switch {
	case r.URL.Path == "/api/tags" && r.Method == http.MethodGet:
		f.Refuse(w, http.StatusOK, `{"models":[{"name":"qwen3:4b","model":"qwen3:4b"}]}`)
	case r.URL.Path == "/api/embed" && r.Method == http.MethodPost:
		f.embed(w, r, body)
	case r.URL.Path != "/api/chat" || r.Method != http.MethodPost:
		f.Refuse(w, http.StatusNotFound, "404 page not found", "Content-Type", "text/plain")
	case err != nil:
		refuse(http.StatusBadRequest, err.Error())
	case q.Model == "":
		refuse(http.StatusBadRequest, "model is required")
	case f.Fault() == servicetest.WrongModel:
		refuse(http.StatusNotFound, "model '"+q.Model+"' not found")
	case think && !slices.Contains(strings.Fields(`true "low" "medium" "high" "max"`), string(q.Think)):
		refuse(http.StatusBadRequest, "invalid think value: "+string(q.Think)+` (must be "high", "medium", "low", true, or false)`)
	case think && f.mode == Thinkless:
		refuse(http.StatusBadRequest, `"`+q.Model+`" does not support thinking`)
	case len(q.Tools) > 0 && f.mode == Toolless:
		refuse(http.StatusBadRequest, "registry.ollama.ai/library/"+q.Model+" does not support tools")
	default:
		f.answer(w, r, &q, think)
	}
}

// line is one of the answer.
func (q *request) line(message object, end object) []byte {
	o := object{"model": q.Model, "created_at": "2026-11-01T12:00:00.000000Z", "message": message, "done": end != nil}
	message["role"] = "assistant"
	if _, is := message["content"]; !is {
		message["content"] = ""
	}
	maps.Copy(o, end)
	return append(servicetest.JSON(o).Data, '\n')
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, q *request, think bool) {
	end := object{"done_reason": "stop", "total_duration": 5_000_000, "load_duration": 1_000_000, "prompt_eval_count": 26, "eval_count": 12}
	e := servicetest.Events{Type: "application/x-ndjson", Pause: time.Millisecond, Broken: []byte("{\"model\":\"x\",\"mess\n"), Filler: q.line(object{"content": servicetest.More}, nil)}
	switch last := len(q.Messages) - 1; {
	case last < 0:
		e.List = [][]byte{q.line(object{}, object{"done_reason": "load"})}
	default:
		m := q.Messages[last]
		if think {
			for _, p := range servicetest.Thirds("The user speaks.") {
				e.List = append(e.List, q.line(object{"thinking": p}, nil))
			}
		}
		var tools []servicetest.Tool
		for _, t := range q.Tools {
			tools = append(tools, servicetest.Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
		}
		if tools = servicetest.Asked(m.Content, tools); m.Role == "tool" {
			tools = nil
		}
		for i, t := range tools {
			call := object{"function": object{"index": i, "name": t.Name, "arguments": json.RawMessage(servicetest.Arguments(t.Schema))}}
			e.List = append(e.List, q.line(object{"tool_calls": []object{call}}, nil))
		}
		if len(tools) == 0 {
			for _, p := range servicetest.Thirds(servicetest.Answer(m.Content)) {
				e.List = append(e.List, q.line(object{"content": p}, nil))
			}
		}
		e.List = append(e.List, q.line(object{}, end))
	}
	if f.mode == Fails {
		e.List[len(e.List)-1] = []byte(`{"error":"llama runner process no longer running: -1"}` + "\n")
	}
	if q.Stream != nil && !*q.Stream {
		f.whole(w, r, q, end)
		return
	}
	f.Stream(w, r, f.Fault(), e)
}

// whole is an answer in one piece.
func (f *fake) whole(w http.ResponseWriter, r *http.Request, q *request, end object) {
	text := ""
	if n := len(q.Messages); n > 0 {
		text = servicetest.Answer(q.Messages[n-1].Content)
	}
	f.Send(w, r, f.Fault(), servicetest.Reply{Type: "application/json; charset=utf-8", Body: q.line(object{"content": text}, end), Broken: []byte(`{"model":`)})
}
