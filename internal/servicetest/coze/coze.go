// Package coze is a fake of Coze: chats of a bot in conversations, their cancelling, and
// the tools that a client runs for a bot.
package coze

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

// Bot is the bot that the token may use.
const Bot = "7374752000116113452"

// Behaviour tells how the chats of the bot go.
type Behaviour int

// The behaviours.
const (
	Answers Behaviour = iota
	Tool              // it wants a tool of the client before it answers
	NoDone            // the stream ends without the event done
	Debug             // the data of done is an object
	Fails             // the chat fails after the first words
)

// Fake is the service. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu            sync.Mutex
	behaviour     Behaviour
	conversations map[string]*conversation
	cancels       int
	ids           int
}

type conversation struct {
	turns int
	chat  string // that runs; "": none
	query string // of it
	user  string
	stop  func()
}

// New starts the service.
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{conversations: map[string]*conversation{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Behave makes the bot behave in another way.
func (f *Fake) Behave(b Behaviour) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.behaviour = b
}

// Forget deletes all conversations.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.conversations)
}

// Cancels returns how many chats were cancelled while they ran.
func (f *Fake) Cancels() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancels
}

// Running returns how many conversations are busy: closing the stream ends no chat.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conversations {
		if c.chat != "" {
			n++
		}
	}
	return n
}

// Answer returns the words of the bot to the n-th query of a conversation.
func Answer(n int, query string) string { return fmt.Sprintf("Answer %d to %s.", n, query) }

// refuse answers in the way of all refusals: with status 200.
func (f *Fake) refuse(w http.ResponseWriter, code int, msg string) {
	raw, _ := json.Marshal(map[string]any{"code": code, "msg": msg, "detail": map[string]string{"logid": "20241210152726467C48D89D6DB2"}}) // it can be encoded
	f.Refuse(w, http.StatusOK, string(raw), "X-Tt-Logid", "20241210152726467C48D89D6DB2")
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || r.Method != http.MethodPost {
		f.refuse(w, 4000, "The field is invalid.")
		return
	}
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	switch fault := f.Fault(); {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		f.refuse(w, 4100, "authentication is invalid")
	case fault == servicetest.NoMoney:
		f.refuse(w, 4028, "Your account is not able to call the Coze API due to insufficient quota.")
	case fault == servicetest.RateLimited:
		f.refuse(w, 4013, "The rate limit has been reached.")
	case r.URL.Path == "/v3/chat":
		f.chat(w, r, body)
	case r.URL.Path == "/v3/chat/cancel":
		f.cancel(w, body)
	case r.URL.Path == "/v3/chat/submit_tool_outputs":
		f.submit(w, r, body)
	case r.URL.Path == "/v1/conversation/create":
		f.mu.Lock()
		id, _ := f.newConversation()
		f.mu.Unlock()
		f.Refuse(w, http.StatusOK, `{"code":0,"msg":"","data":{"id":"`+id+`","created_at":1718289297}}`)
	default:
		http.NotFound(w, r)
	}
}

// newConversation makes one. The caller holds mu.
func (f *Fake) newConversation() (string, *conversation) {
	f.ids++
	id := fmt.Sprintf("73745%014d", f.ids)
	f.conversations[id] = &conversation{}
	return id, f.conversations[id]
}

// request is the body of a chat. A conversation in it is not looked at.
type request struct {
	Bot      string `json:"bot_id"`
	User     string `json:"user_id"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role        string `json:"role"`
		Type        string `json:"type"`
		ContentType string `json:"content_type"`
		Content     string `json:"content"`
	} `json:"additional_messages"`
}

func (f *Fake) chat(w http.ResponseWriter, r *http.Request, body []byte) {
	var q request
	if json.Unmarshal(body, &q) != nil || q.Bot == "" || q.User == "" || !q.Stream {
		f.refuse(w, 4000, "The field bot_id, user_id or stream is invalid.")
		return
	}
	n := len(q.Messages)
	switch {
	case q.Bot != Bot || f.Fault() == servicetest.WrongModel:
		f.refuse(w, 4200, "Requested resource bot_id="+q.Bot+" does not exist. Please check the resource ID, or ensure the resource has been published.")
		return
	case n == 0 || q.Messages[n-1].Role != "user" || q.Messages[n-1].ContentType != "text" || q.Messages[n-1].Content == "":
		f.refuse(w, 4000, "additional_messages is invalid.")
		return
	}
	f.mu.Lock()
	id := r.URL.Query().Get("conversation_id")
	c := f.conversations[id]
	switch {
	case id == "":
		id, c = f.newConversation()
	case c == nil:
		f.mu.Unlock()
		f.refuse(w, 4200, "Requested resource conversation_id="+id+" does not exist.")
		return
	case c.chat != "":
		f.mu.Unlock()
		f.refuse(w, 4009, "A chat is running in the conversation; wait until it is complete, or cancel it.")
		return
	}
	f.ids++
	c.turns++
	c.chat, c.query, c.user = fmt.Sprintf("73746%014d", f.ids), q.Messages[n-1].Content, q.User
	s, behaviour := f.stream(id, c), f.behaviour
	f.mu.Unlock()
	s.event("conversation.chat.created", s.chatObject("created"))
	s.event("conversation.chat.in_progress", s.chatObject("in_progress"))
	if behaviour == Tool {
		s.wantTool()
		f.send(w, r, s, nil)
		return
	}
	s.say(pieces(s.turn, s.query), behaviour)
	f.send(w, r, s, behaviour.end(s))
}

// stream begins the events of the chat that runs. The caller holds mu.
func (f *Fake) stream(id string, c *conversation) *stream {
	stop := make(chan struct{})
	c.stop = sync.OnceFunc(func() { close(stop) })
	return &stream{conversation: id, chat: c.chat, query: c.query, turn: c.turns, stop: stop}
}

// send sends the events of a chat. One that is sent to its last, if it has that, is over.
func (f *Fake) send(w http.ResponseWriter, r *http.Request, s *stream, last [][]byte) {
	whole := f.Stream(w, r, f.Fault(), servicetest.Events{
		List: s.list, Last: last, Pause: 3 * time.Millisecond, Stop: s.stop,
		Broken: []byte("event:conversation.message.delta\ndata:{\"id\":\n\n"),
		Filler: event("conversation.message.delta", map[string]any{"type": "answer", "content": servicetest.More}),
	})
	if whole && last != nil {
		f.end(s.conversation, s.chat)
	}
}

// end ends a chat, if it runs.
func (f *Fake) end(id, chat string) (ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.conversations[id]
	if c == nil || c.chat == "" || c.chat != chat {
		return false
	}
	c.chat = ""
	c.stop()
	return true
}

func (f *Fake) cancel(w http.ResponseWriter, body []byte) {
	var q struct {
		Conversation string `json:"conversation_id"`
		Chat         string `json:"chat_id"`
	}
	if json.Unmarshal(body, &q) != nil || !f.end(q.Conversation, q.Chat) {
		f.refuse(w, 4000, "The chat is not running.")
		return
	}
	f.mu.Lock()
	f.cancels++
	f.mu.Unlock()
	f.Refuse(w, http.StatusOK, `{"code":0,"msg":"","data":{"id":"`+q.Chat+`","conversation_id":"`+q.Conversation+`","status":"canceled"}}`)
}

// submit takes the results of tools, and goes on with the chat.
func (f *Fake) submit(w http.ResponseWriter, r *http.Request, body []byte) {
	var q struct {
		Stream  bool `json:"stream"`
		Outputs []struct {
			ID     string `json:"tool_call_id"`
			Output string `json:"output"`
		} `json:"tool_outputs"`
	}
	err := json.Unmarshal(body, &q)
	id, chat := r.URL.Query().Get("conversation_id"), r.URL.Query().Get("chat_id")
	f.mu.Lock()
	c := f.conversations[id]
	if err != nil || !q.Stream || c == nil || c.chat == "" || c.chat != chat || len(q.Outputs) != 1 || q.Outputs[0].ID != toolCall {
		f.mu.Unlock()
		f.refuse(w, 4000, "The chat waits for no such outputs.")
		return
	}
	s := f.stream(id, c)
	f.mu.Unlock()
	s.say([]string{"The tool says ", strings.TrimSpace(q.Outputs[0].Output), "."}, Answers)
	f.send(w, r, s, Answers.end(s))
}
