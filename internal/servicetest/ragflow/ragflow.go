// Package ragflow is a fake of RAGFlow: chats in its own shape and in OpenAI's, agents,
// sessions and retrieval.
package ragflow

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

// Chat and Agent are the ids of the chat assistant and of the agent that there are.
const (
	Chat  = "b1f2f15691f911ef81180242ac120003"
	Agent = "c1f2f15691f911ef81180242ac120003"
)

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu         sync.Mutex
	cumulative bool           // answers hold all that came before, as of old
	sessions   map[string]int // their turns
	begun      int            // sessions
}

// New starts the server. Its API is at URL()+"/api/v1".
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{sessions: map[string]int{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Accumulate has every piece of an answer hold all before it, as versions before 0.24 do.
func (f *Fake) Accumulate() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cumulative = true
}

// Forget deletes all sessions.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.sessions)
}

// Answer returns the words for the n-th query of a session.
func Answer(n int, query string) string { return fmt.Sprintf("Answer %d to %s.", n, query) }

// request is the body of all that asks for an answer.
type request struct {
	ChatID   string `json:"chat_id"`
	AgentID  string `json:"agent_id"`
	Session  string `json:"session_id"`
	Question string `json:"question"`
	Query    string `json:"query"`
	Stream   *bool  `json:"stream"`
	Legacy   bool   `json:"legacy"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
}

// words returns the newest words of the user.
func (q *request) words() string {
	if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == "user" {
		return q.Messages[n-1].Content
	}
	return q.Question + q.Query
}

// refuse answers in the way of all refusals: with status 200.
func (f *Fake) refuse(w http.ResponseWriter, code int, message string) {
	body, _ := json.Marshal(map[string]any{"code": code, "data": false, "message": message}) // it can be encoded
	f.Refuse(w, http.StatusOK, string(body))
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v1/")
	if !ok || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var q request
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	parts := strings.Split(path, "/")
	shape := len(parts) == 4 && strings.HasSuffix(path, "/chat/completions") || len(parts) == 3 && parts[2] == "completions"
	switch fault := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		f.refuse(w, 109, "Authentication error: API key is invalid!")
	case err != nil:
		f.refuse(w, 101, "The body is no JSON.")
	case fault == servicetest.WrongModel:
		f.refuse(w, 102, "Model(x) not authorized")
	case path == "retrieval":
		f.retrieve(w, q)
	case len(parts) == 3 && parts[0] == "chats" && parts[2] == "sessions":
		f.Refuse(w, http.StatusOK, `{"code":0,"data":{"id":"`+f.session("", "")+`","chat_id":"`+parts[1]+`"}}`)
	case path == "agents/chat/completions":
		f.agent(w, r, q)
	case path == "chat/completions":
		f.chat(w, r, q)
	case shape && (parts[0] == "openai" || strings.HasSuffix(parts[0], "_openai")):
		f.openai(w, r, q, parts[1])
	default:
		http.NotFound(w, r)
	}
}

// session finds a session, or begins one. "": there is none of that id.
func (f *Fake) session(id, words string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" {
		f.begun++
		id = fmt.Sprintf("8ab2c14691fa11ef8%015d", f.begun)
		f.sessions[id] = 0
	}
	if _, ok := f.sessions[id]; !ok {
		return ""
	}
	if words != "" {
		f.sessions[id]++
	}
	return id
}

func (f *Fake) turn(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

// event is one of the server's: there is no space after the colon.
func event(v any) []byte {
	raw, _ := json.Marshal(v) // it can be encoded
	return fmt.Appendf(nil, "data:%s\n\n", raw)
}

// pieces are those of an answer.
func pieces(n int, query string) []string {
	words := []rune(Answer(n, query))
	return []string{string(words[:4]), string(words[4:10]), string(words[10:])}
}

// stream sends the events of an answer. more is the event of a piece without end.
func (f *Fake) stream(w http.ResponseWriter, r *http.Request, list [][]byte, more []byte) {
	f.Stream(w, r, f.Fault(), servicetest.Events{List: list, Pause: 3 * time.Millisecond, Broken: []byte("data:{\"code\": 0, \"da\n\n"), Filler: more})
}
