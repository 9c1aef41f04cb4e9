// Package homeassistant is a fake of Home Assistant's conversations: by REST, and streamed
// by its WebSocket.
package homeassistant

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// Agent is the conversation agent that there is beside the default one.
const Agent = "conversation.home"

// Behaviour tells how the agent answers.
type Behaviour int

// The behaviours.
const (
	Answers  Behaviour = iota
	SSML               // the speech is marked up
	Silent             // an action is done, and nothing said
	NoIntent           // it did not understand
	Asks               // it wants the user to go on
)

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu        sync.Mutex
	behaviour Behaviour
	talks     map[string]int // their turns
	begun     int            // talks
}

// New starts the server.
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{talks: map[string]int{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Behave makes the agent behave in another way.
func (f *Fake) Behave(b Behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behaviour = b
}

// Forget drops all conversations, as the server does after a few minutes.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.talks)
}

// Answer returns the words for the n-th input of a conversation.
func Answer(n int, input string) string { return fmt.Sprintf("Answer %d to %s.", n, input) }

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/websocket":
		f.socket(w, r)
	case r.URL.Path == "/api/conversation/process" && r.Method == http.MethodPost:
		f.process(w, r)
	case r.URL.Path == "/api/":
		f.Refuse(w, http.StatusOK, `{"message":"API running."}`)
	default:
		http.NotFound(w, r)
	}
}

// process answers a request by REST.
func (f *Fake) process(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var q struct {
		Text         string `json:"text"`
		Agent        string `json:"agent_id"`
		Conversation string `json:"conversation_id"`
	}
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	switch known := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || known == servicetest.WrongKey:
		f.Refuse(w, http.StatusUnauthorized, "401: Unauthorized", "Content-Type", "text/plain; charset=utf-8")
	case err != nil:
		f.Refuse(w, http.StatusBadRequest, `{"message":"Invalid JSON specified."}`)
	case q.Text == "":
		f.Refuse(w, http.StatusBadRequest, `{"message":"Message format incorrect: required key not provided @ data['text']"}`)
	case q.Agent != "" && q.Agent != Agent || known == servicetest.WrongModel:
		f.Refuse(w, http.StatusBadRequest, `{"message":"Message format incorrect: invalid agent ID for dictionary value @ data['agent_id']"}`)
	default:
		raw, _ := json.Marshal(f.answer(q.Conversation, q.Text)) // it can be encoded
		f.Send(w, r, known, servicetest.Reply{Type: "application/json", Body: raw, Broken: []byte(`{"response": {"sp`)})
	}
}

// turn finds a conversation, or begins another one: an id that is not known gets a new one.
func (f *Fake) turn(id string) (string, int, Behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.talks[id]; !ok {
		f.begun++
		id = fmt.Sprintf("01JP8YT0000000000000%06d", f.begun)
	}
	f.talks[id]++
	return id, f.talks[id], f.behaviour
}

// answer makes the reply that both ways give in the end.
func (f *Fake) answer(conversation, text string) map[string]any {
	id, n, behaviour := f.turn(conversation)
	return reply(id, Answer(n, text), behaviour)
}

func reply(id, words string, b Behaviour) map[string]any {
	kind, data := "query_answer", map[string]any{"targets": []any{}, "success": []any{}, "failed": []any{}}
	speech := map[string]any{"plain": map[string]any{"speech": words, "extra_data": nil}}
	switch b {
	case SSML:
		speech = map[string]any{"ssml": map[string]any{"speech": "<speak>" + words + "</speak>", "extra_data": nil}}
	case Silent:
		kind, speech = "action_done", map[string]any{}
		data["success"] = []any{map[string]any{"type": "entity", "name": "Lamp", "id": "light.lamp"}}
	case NoIntent:
		kind, data = "error", map[string]any{"code": "no_intent_match"}
		speech = map[string]any{"plain": map[string]any{"speech": "Sorry, I couldn't understand that", "extra_data": nil}}
	case Answers, Asks:
	}
	return map[string]any{
		"conversation_id": id, "continue_conversation": b == Asks,
		"response": map[string]any{"response_type": kind, "language": "en", "card": map[string]any{}, "data": data, "speech": speech},
	}
}

// command is a message of the client.
type command struct {
	ID    int    `json:"id"`
	Type  string `json:"type"`
	Token string `json:"access_token"`
	Start string `json:"start_stage"`
	End   string `json:"end_stage"`
	Input struct {
		Text string `json:"text"`
	} `json:"input"`
	Conversation string `json:"conversation_id"`
	Pipeline     string `json:"pipeline"`
}

// socket answers by WebSocket, command by command.
func (f *Fake) socket(w http.ResponseWriter, r *http.Request) {
	c, ok := f.Socket(w, r, nil)
	if !ok {
		return
	}
	defer func() { _ = c.Close() }()
	const version = "2026.11.0"
	_ = c.WriteJSON(map[string]any{"type": "auth_required", "ha_version": version}) // a client that is gone is met below
	var q command
	if c.ReadJSON(&q) != nil {
		return
	}
	if q.Type != "auth" || q.Token != servicetest.Key || f.Fault() == servicetest.WrongKey {
		_ = c.WriteJSON(map[string]any{"type": "auth_invalid", "message": "Invalid access token or password"})
		return
	}
	_ = c.WriteJSON(map[string]any{"type": "auth_ok", "ha_version": version})
	for last := 0; ; {
		q = command{}
		_, raw, err := c.ReadMessage()
		if err != nil || json.Unmarshal(raw, &q) != nil {
			return
		}
		f.Note(servicetest.Request{Method: "WS", Path: r.URL.Path, Body: append(raw, '\n')})
		if q.ID <= last {
			_ = c.WriteJSON(failure(q.ID, "id_reuse", "Identifier values have to increase."))
			continue
		}
		last = q.ID
		if !f.command(c, r, q) {
			return
		}
	}
}

// failure is the result of a command that was refused.
func failure(id int, code, message string) map[string]any {
	return map[string]any{"id": id, "type": "result", "success": false, "error": map[string]any{"code": code, "message": message}}
}

// command answers one command. False: the socket is to be closed.
func (f *Fake) command(c *websocket.Conn, r *http.Request, q command) bool {
	switch {
	case q.Type == "ping":
		return c.WriteJSON(map[string]any{"id": q.ID, "type": "pong"}) == nil
	case q.Type != "assist_pipeline/run":
		return c.WriteJSON(failure(q.ID, "unknown_command", "Unknown command.")) == nil
	case q.Start != "intent" || q.End != "intent" || q.Input.Text == "":
		return c.WriteJSON(failure(q.ID, "invalid_format", "required key not provided @ data['input']['text']")) == nil
	case q.Pipeline != "" || f.Fault() == servicetest.WrongModel:
		return c.WriteJSON(failure(q.ID, "pipeline-not-found", "Pipeline not found")) == nil
	}
	return f.run(c, r, q)
}

// run streams an answer.
func (f *Fake) run(c *websocket.Conn, r *http.Request, q command) bool {
	known := f.Fault()
	if known == servicetest.Silent {
		f.Hold(c)
		return false
	}
	if known == servicetest.Slow && !f.Wait(r.Context(), 300*time.Millisecond) {
		return false
	}
	id, n, behaviour := f.turn(q.Conversation)
	event := func(kind string, data any) bool {
		return c.WriteJSON(map[string]any{"id": q.ID, "type": "event", "event": map[string]any{"type": kind, "data": data, "timestamp": "2026-11-23T05:00:00+00:00"}}) == nil
	}
	delta := func(d map[string]any) bool { return event("intent-progress", map[string]any{"chat_log_delta": d}) }
	if c.WriteJSON(map[string]any{"id": q.ID, "type": "result", "success": true, "result": nil}) != nil ||
		!event("run-start", map[string]any{"pipeline": "p", "language": "en", "conversation_id": id}) ||
		!event("intent-start", map[string]any{"engine": Agent, "language": "*", "intent_input": q.Input.Text}) {
		return false
	}
	if known == servicetest.Broken {
		_ = c.WriteMessage(websocket.TextMessage, []byte(`{"id": 1, "type": "ev`))
		return false
	}
	words := []rune(Answer(n, q.Input.Text))
	if behaviour == Answers || behaviour == Asks {
		delta(map[string]any{"role": "assistant"})
		delta(map[string]any{"tool_calls": []any{map[string]any{"id": "t", "tool_name": "HassTurnOn", "tool_args": map[string]any{"name": "Lamp"}}}})
		delta(map[string]any{"role": "tool_result", "tool_call_id": "t", "tool_name": "HassTurnOn", "tool_result": map[string]any{"speech": "secret of a tool"}})
		delta(map[string]any{"role": "assistant"})
		for i, piece := range []string{string(words[:4]), string(words[4:10]), string(words[10:])} {
			if i > 0 && f.ends(c, known, delta) || !delta(map[string]any{"content": piece}) {
				return false
			}
		}
	}
	return event("intent-end", map[string]any{"processed_locally": false, "intent_output": reply(id, string(words), behaviour)}) && event("run-end", nil)
}

// ends does what a fault wants amid an answer. It reports whether that was all.
func (f *Fake) ends(c *websocket.Conn, known servicetest.Fault, delta func(map[string]any) bool) bool {
	switch known {
	case servicetest.Cut:
		servicetest.Drop(c.NetConn())
		return true
	case servicetest.Closed:
		_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseInternalServerErr, ""), time.Now().Add(time.Second))
		return true
	case servicetest.Huge:
		for sent := 0; sent < 64<<20; sent += len(servicetest.More) {
			if !delta(map[string]any{"content": servicetest.More}) {
				break
			}
		}
		return true
	default:
		return false
	}
}
