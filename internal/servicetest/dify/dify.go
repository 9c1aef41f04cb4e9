// Package dify is a fake of a Dify server: chatbots, agents, chatflows, workflows and
// completion apps, with their conversations and the stopping of answers.
package dify

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// App is the sort of app that the key belongs to, and what it does.
type App int

// The apps.
const (
	Chatbot     App = iota
	Agent           // it answers by agent_message
	NewAgent        // as Agent, and a message at the end repeats the answer
	Chatflow        // workflow events around the answer
	FailedFlow      // a chatflow that fails after the first words
	PausedFlow      // a chatflow that waits for a person
	Moderated       // what was answered is replaced
	FailsMidway     // an error amid the answer
	Workflow        // /workflows/run
	Completion      // /completion-messages
)

// Stop is a request to stop an answer.
type Stop struct{ Task, User string }

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu            sync.Mutex
	app           App
	overloaded    bool // 429 is by rate_limit_error
	conversations map[string]*conversation
	running       map[string]*run
	stops         []Stop
	ids           int
}

type conversation struct {
	user  string
	turns int
}

// run is an answer that is being given.
type run struct {
	user string
	stop func()
}

// New starts the server. Its API is at URL()+"/v1".
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{conversations: map[string]*conversation{}, running: map[string]*run{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Be makes the app another one.
func (f *Fake) Be(a App) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.app = a
}

// LimitHard has a limited rate be one that is not to be tried again.
func (f *Fake) LimitHard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.overloaded = true
}

// Forget deletes all conversations.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.conversations)
}

// Stops returns the requests to stop, in order.
func (f *Fake) Stops() []Stop {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Stop(nil), f.stops...)
}

// Running returns how many answers are being given: closing the connection ends none.
func (f *Fake) Running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.running)
}

// Answer returns the words of the app to the n-th query of a conversation.
func Answer(n int, query string) string { return fmt.Sprintf("Answer %d to %s.", n, query) }

// request is the body of all that asks for an answer.
type request struct {
	Inputs       map[string]any `json:"inputs"`
	Query        *string        `json:"query"`
	User         string         `json:"user"`
	Mode         string         `json:"response_mode"`
	Conversation string         `json:"conversation_id"`
}

func (f *Fake) refuse(w http.ResponseWriter, status int, code, message string) {
	body, _ := json.Marshal(map[string]any{"code": code, "message": message, "status": status}) // it can be encoded
	f.Refuse(w, status, string(body))
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+servicetest.Key || f.Fault() == servicetest.WrongKey {
		f.refuse(w, http.StatusUnauthorized, "unauthorized", "Access token is invalid")
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case r.Method == http.MethodGet && (path == "/parameters" || path == "/info"):
		f.Refuse(w, http.StatusOK, `{"name":"fake","opening_statement":""}`)
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
	case parts[len(parts)-1] == "stop" && (len(parts) == 3 || len(parts) == 4 && parts[0] == "workflows"):
		f.stop(w, r, parts[len(parts)-2])
	case path == "/chat-messages", path == "/completion-messages", path == "/workflows/run":
		f.ask(w, r, path)
	default:
		http.NotFound(w, r)
	}
}

// stop ends an answer, if the user is the one who has asked; else it does nothing.
func (f *Fake) stop(w http.ResponseWriter, r *http.Request, task string) {
	var q struct {
		User string `json:"user"`
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q) != nil || q.User == "" {
		f.refuse(w, http.StatusBadRequest, "invalid_param", "user is required")
		return
	}
	f.mu.Lock()
	f.stops = append(f.stops, Stop{task, q.User})
	if run := f.running[task]; run != nil && run.user == q.User {
		run.stop()
		delete(f.running, task) // its reader may be gone
	}
	f.mu.Unlock()
	f.Refuse(w, http.StatusOK, `{"result":"success"}`)
}

// ask checks a request and answers it.
func (f *Fake) ask(w http.ResponseWriter, r *http.Request, path string) {
	var q request
	body, err := readAll(w, r)
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	f.mu.Lock()
	app, hard := f.app, f.overloaded
	f.mu.Unlock()
	switch fault := f.Fault(); {
	case err != nil || q.Inputs == nil:
		f.refuse(w, http.StatusBadRequest, "invalid_param", "inputs is required")
	case q.User == "":
		f.refuse(w, http.StatusBadRequest, "invalid_param", "user is required")
	case path == "/chat-messages" && (app == Workflow || app == Completion):
		f.refuse(w, http.StatusBadRequest, "not_chat_app", "Please check if your app mode matches the right API route.")
	case path == "/chat-messages" && (q.Query == nil || *q.Query == ""):
		f.refuse(w, http.StatusBadRequest, "invalid_param", "query is required")
	case q.Mode != "streaming" && (app == Agent || app == NewAgent):
		f.refuse(w, http.StatusBadRequest, "invalid_param", "Agent Chat App does not support blocking mode")
	case fault == servicetest.NoMoney:
		f.refuse(w, http.StatusBadRequest, "provider_quota_exceeded", "Your quota for Dify Hosted Model Provider has been exhausted. Please go to Settings -> Model Provider to complete your own provider credentials.")
	case fault == servicetest.RateLimited && hard:
		f.refuse(w, http.StatusTooManyRequests, "rate_limit_error", "Rate Limit Error")
	case fault == servicetest.RateLimited:
		f.refuse(w, http.StatusTooManyRequests, "too_many_requests", "Too many requests. Please try again later.")
	case fault == servicetest.WrongModel:
		f.refuse(w, http.StatusBadRequest, "model_currently_not_support", "Dify Hosted OpenAI trial currently not support the GPT-4 model.")
	case path == "/chat-messages":
		f.chat(w, r, app, q)
	default:
		f.flow(w, r, path, q)
	}
}

// turn finds the conversation of a query, or begins one. False: there is none of that id.
func (f *Fake) turn(q request) (id string, n int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id = q.Conversation; id == "" {
		f.ids++
		id = fmt.Sprintf("45701982-8118-4bc5-8e9b-%012d", f.ids)
		f.conversations[id] = &conversation{user: q.User}
	}
	c := f.conversations[id]
	if c == nil || c.user != q.User {
		return "", 0, false
	}
	c.turns++
	return id, c.turns, true
}

// begin notes an answer that is being given. Its end is called when it is complete.
func (f *Fake) begin(user string) (task string, stopped <-chan struct{}, end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	task = fmt.Sprintf("c3800678-a077-43df-a102-%012d", f.ids)
	stop := make(chan struct{})
	f.running[task] = &run{user: user, stop: sync.OnceFunc(func() { close(stop) })}
	return task, stop, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.running, task)
	}
}

// pause is that between two events of an answer.
const pause = 3 * time.Millisecond

// long is how many pieces the answer to a query has in which the word stands.
const long = 400

// pieces are those of an answer: of most, three.
func pieces(n int, query string) []string {
	if strings.Contains(query, "long") {
		out := make([]string, long)
		for i := range out {
			out[i] = fmt.Sprintf("piece %d. ", i)
		}
		return out
	}
	words := []rune(Answer(n, query))
	return []string{string(words[:4]), string(words[4:10]), string(words[10:])}
}
