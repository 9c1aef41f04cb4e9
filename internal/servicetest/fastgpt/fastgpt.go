// Package fastgpt is a fake of FastGPT: the chats of an app in the shape of OpenAI's, with
// a history of its own for each chatId.
package fastgpt

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Behaviour tells how the app answers.
type Behaviour int

// The behaviours.
const (
	Answers  Behaviour = iota
	Reasons            // its reasoning comes before, in a field and in tags
	FailsMid           // an event of an error amid the answer
)

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu        sync.Mutex
	behaviour Behaviour
	turns     map[string]int // of each chat
}

// New starts the server. Its API is at URL()+"/api".
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{turns: map[string]int{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Behave makes the app behave in another way.
func (f *Fake) Behave(b Behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behaviour = b
}

// Answer returns the words of the app for the n-th query of a chat.
func Answer(n int, query string) string { return fmt.Sprintf("Answer %d to %s.", n, query) }

// request is the body of a chat.
type request struct {
	ChatID   string `json:"chatId"`
	Stream   bool   `json:"stream"`
	Detail   bool   `json:"detail"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
}

func (f *Fake) refuse(w http.ResponseWriter, status int, name, message string) {
	body, _ := json.Marshal(map[string]any{"code": status, "statusText": name, "message": message, "data": nil}) // it can be encoded
	f.Refuse(w, status, string(body))
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/api/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var q request
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	n := len(q.Messages)
	switch fault := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		f.refuse(w, http.StatusForbidden, "unAuthApiKey", "Key is error")
	case fault == servicetest.NoMoney:
		f.refuse(w, http.StatusInternalServerError, "aiPointsNotEnough", "AI points are not enough")
	case fault == servicetest.RateLimited:
		f.refuse(w, http.StatusTooManyRequests, "tooManyRequest", "Too many request")
	case err != nil || n == 0 || q.Messages[n-1].Role != "user" || q.Messages[n-1].Content == "":
		f.refuse(w, http.StatusInternalServerError, "error", "messages is empty")
	default:
		f.answer(w, r, q, q.Messages[n-1].Content)
	}
}

// begin counts the turns of a chat. Without a chatId nothing is kept.
func (f *Fake) begin(chat string) (turn int, b Behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if chat == "" {
		return 1, f.behaviour
	}
	f.turns[chat]++
	return f.turns[chat], f.behaviour
}

// answer answers the newest message.
func (f *Fake) answer(w http.ResponseWriter, r *http.Request, q request, query string) {
	turn, behaviour := f.begin(q.ChatID)
	words := []rune(Answer(turn, query))
	if !q.Stream {
		raw, _ := json.Marshal(map[string]any{ // it can be encoded
			"id": q.ChatID, "model": "",
			"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": string(words)}, "finish_reason": "stop", "index": 0}},
		})
		f.Send(w, r, f.Fault(), servicetest.Reply{Type: "application/json", Body: raw, Broken: []byte("{")})
		return
	}
	name := ""
	e := servicetest.Events{Pause: 3 * time.Millisecond, Broken: []byte("data: {\"id\":\"\",\"object\n\n"), Filler: chunk("", map[string]any{"content": servicetest.More}, nil)}
	if q.Detail {
		name = "answer"
		e.List = append(e.List, servicetest.Event("flowNodeStatus", `{"status":"running","name":"AI Chat"}`))
	}
	e.List = append(e.List, chunk(name, map[string]any{"role": "assistant", "content": ""}, nil))
	if behaviour == Reasons {
		e.List = append(e.List, chunk(name, map[string]any{"reasoning_content": "hm"}, nil), chunk(name, map[string]any{"content": "<think>well</think>"}, nil))
	}
	for i, piece := range []string{string(words[:4]), string(words[4:10]), string(words[10:])} {
		e.List = append(e.List, chunk(name, map[string]any{"content": piece}, nil))
		if i == 0 && behaviour == FailsMid {
			e.List = append(e.List, servicetest.Event("error", `{"code":500,"statusText":"error","message":"the model behind has failed"}`))
			f.Stream(w, r, f.Fault(), e)
			return
		}
	}
	e.Last = [][]byte{chunk(name, map[string]any{"content": nil}, "stop"), servicetest.Event(name, "[DONE]")}
	if q.Detail {
		e.Last = append(e.Last, servicetest.Event("flowResponses", `[{"moduleName":"AI Chat","tokens":1}]`))
	}
	f.Stream(w, r, f.Fault(), e)
}

// chunk is an event in the shape of OpenAI's.
func chunk(event string, delta map[string]any, finish any) []byte {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": finish}
	raw, _ := json.Marshal(map[string]any{"id": "", "object": "", "created": 0, "model": "", "choices": []any{choice}}) // it can be encoded
	return servicetest.Event(event, string(raw))
}
