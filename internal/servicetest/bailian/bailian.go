// Package bailian is a fake of the applications of Bailian (DashScope): answers in events
// that add to one another or hold all so far, and sessions that the service names.
package bailian

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// App is the id of the application that there is.
const App = "0123456789abcdef0123456789abcdef"

// Fake is the service. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu       sync.Mutex
	midway   bool           // an error comes amid the answer
	sessions map[string]int // their turns
	begun    int            // sessions
}

// New starts the service.
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{sessions: map[string]int{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// FailMidway has an error come amid each answer.
func (f *Fake) FailMidway() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.midway = true
}

// Forget deletes all sessions.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.sessions)
}

// Answer returns the words of the application for the n-th prompt of a session.
func Answer(n int, prompt string) string { return fmt.Sprintf("Answer %d to %s.", n, prompt) }

// request is the body of a request.
type request struct {
	Input struct {
		Prompt   string            `json:"prompt"`
		Session  string            `json:"session_id"`
		Messages []json.RawMessage `json:"messages"`
	} `json:"input"`
	Parameters struct {
		Incremental bool `json:"incremental_output"`
		Thoughts    bool `json:"has_thoughts"`
	} `json:"parameters"`
}

const id = "5c4c0ff9-6a0b-9a8e-a9e5-000000000001" // of every request

func fault(code, message string) string {
	raw, _ := json.Marshal(map[string]string{"code": code, "message": message, "request_id": id}) // it can be encoded
	return string(raw)
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	app, ok := strings.CutPrefix(r.URL.Path, "/api/v1/apps/")
	app, end, _ := strings.Cut(app, "/")
	if !ok || end != "completion" || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var q request
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	switch known := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || known == servicetest.WrongKey:
		f.Refuse(w, http.StatusUnauthorized, fault("InvalidApiKey", "Invalid API-key provided."))
	case known == servicetest.NoMoney:
		f.Refuse(w, http.StatusBadRequest, fault("Arrearage", "Access denied, please make sure your account is in good standing."))
	case known == servicetest.RateLimited:
		f.Refuse(w, http.StatusTooManyRequests, fault("Throttling.RateQuota", "Requests rate limit exceeded, please try again later."))
	case app != App || known == servicetest.WrongModel:
		f.Refuse(w, http.StatusBadRequest, fault("InvalidParameter", "App not found or has been deleted"))
	case err != nil || q.Input.Prompt == "" && len(q.Input.Messages) == 0:
		f.Refuse(w, http.StatusBadRequest, fault("InvalidParameter", "Required parameter(prompt) missing or invalid, please check the request parameters."))
	case q.Input.Session != "" && len(q.Input.Messages) > 0:
		f.Refuse(w, http.StatusBadRequest, fault("InvalidParameter", "session_id and messages exclude each other"))
	default:
		f.answer(w, r, q)
	}
}

// turn finds the session of a prompt, or begins one: that of an id which the service has
// not given begins another.
func (f *Fake) turn(session string) (string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.sessions[session]; !ok {
		f.begun++
		session = fmt.Sprintf("6105c965c31b40958a43dc9%09d", f.begun)
	}
	f.sessions[session]++
	return session, f.sessions[session]
}

// event is one of an answer, as the service writes it.
func event(n int, name, status, data string) []byte {
	return fmt.Appendf(nil, "id:%d\nevent:%s\n:HTTP_STATUS/%s\ndata:%s\n\n", n, name, status, data)
}

func (f *Fake) answer(w http.ResponseWriter, r *http.Request, q request) {
	session, n := f.turn(q.Input.Session)
	output := func(text, finish string) string {
		raw, _ := json.Marshal(map[string]any{ // it can be encoded
			"output": map[string]any{"text": text, "finish_reason": finish, "session_id": session},
			"usage":  map[string]any{"models": []any{map[string]any{"model_id": "qwen-plus", "input_tokens": 50, "output_tokens": 7}}}, "request_id": id,
		})
		return string(raw)
	}
	words := Answer(n, q.Input.Prompt)
	if r.Header.Get("X-DashScope-SSE") != "enable" {
		f.Send(w, r, f.Fault(), servicetest.Reply{Type: "application/json", Body: []byte(output(words, "stop")), Broken: []byte("{")})
		return
	}
	f.mu.Lock()
	midway := f.midway
	f.mu.Unlock()
	e := servicetest.Events{Pause: 3 * time.Millisecond, Broken: event(1, "result", "200", `{"output":{"te`), Filler: event(1, "result", "200", output(servicetest.More, "null"))}
	said := ""
	runes := []rune(words)
	for i, piece := range []string{string(runes[:4]), string(runes[4:10]), string(runes[10:])} {
		if said += piece; !q.Parameters.Incremental {
			piece = said
		}
		e.List = append(e.List, event(i+1, "result", "200", output(piece, "null")))
		if i == 0 && midway {
			e.List = append(e.List, event(2, "error", "400", fault("DataInspectionFailed", "Output data may contain inappropriate content.")))
			f.Stream(w, r, f.Fault(), e)
			return
		}
	}
	if last := ""; q.Parameters.Incremental {
		said = last
	}
	e.Last = [][]byte{event(4, "result", "200", output(said, "stop"))}
	f.Stream(w, r, f.Fault(), e)
}
