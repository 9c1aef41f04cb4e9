// Package n8n is a fake of n8n: the webhooks of a workflow, with every way in which such
// a workflow may reply.
package n8n

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

// ID is that of the webhook that is active. Its addresses are /webhook/ID/chat, /webhook/ID
// and, once after each [Fake.Listen], /webhook-test/ID.
const ID = "a889d2ae-2159-402f-b326-5f61e90f602e"

// Reply tells how the workflow replies.
type Reply int

// The replies.
const (
	Agent    Reply = iota // {"output": …}
	Streamed              // lines of JSON
	Array                 // [{"output": …}]
	Text                  // {"text": …}
	Words                 // plain text
	Empty                 // nothing
	FailsMid              // a line of an error amid the others
)

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu    sync.Mutex
	reply Reply
	test  bool           // the test address is listened to
	turns map[string]int // of each session
	runs  int
}

// New starts the server.
func New(t testing.TB) *Fake {
	t.Helper()
	f := &Fake{turns: map[string]int{}}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.WrongModel,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Respond makes the workflow reply in another way.
func (f *Fake) Respond(r Reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reply = r
}

// Listen has the test address answer once.
func (f *Fake) Listen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.test = true
}

// Runs returns how often the workflow ran: any request to it is a run.
func (f *Fake) Runs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs
}

// Answer returns the words of the workflow for the n-th input of a session.
func Answer(n int, input string) string { return fmt.Sprintf("Answer %d to %s.", n, input) }

// active reports whether a path has a webhook now. An inactive workflow is a wrong model.
func (f *Fake) active(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	once := path == "/webhook-test/"+ID && f.test
	if once {
		f.test = false
	}
	return f.Fault() != servicetest.WrongModel && (once || path == "/webhook/"+ID || path == "/webhook/"+ID+"/chat")
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var q struct {
		Action  string `json:"action"`
		Session string `json:"sessionId"`
		Input   string `json:"chatInput"`
	}
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	switch {
	case !f.active(r.URL.Path):
		f.Refuse(w, http.StatusNotFound, fmt.Sprintf(`{"code":404,"message":"The requested webhook \"%s %s\" is not registered.","hint":"The workflow must be active for a production URL to run successfully."}`, r.Method, strings.TrimPrefix(r.URL.Path, "/webhook/")))
	case !allowed(r) || f.Fault() == servicetest.WrongKey:
		f.Refuse(w, http.StatusForbidden, "Authorization data is wrong!", "Content-Type", "text/html; charset=utf-8")
	case err != nil || strings.HasSuffix(r.URL.Path, "/chat") && (q.Action != "sendMessage" || q.Session == "" || q.Input == ""):
		f.Refuse(w, http.StatusInternalServerError, `{"message":"Error in workflow"}`)
	default:
		f.run(w, r, q.Session, q.Input)
	}
}

// allowed takes the key as Bearer, as the password of Basic, or in a header of its own.
func allowed(r *http.Request) bool {
	_, password, basic := r.BasicAuth()
	return basic && password == servicetest.Key || r.Header.Get("Authorization") == "Bearer "+servicetest.Key || r.Header.Get("X-Webhook-Key") == servicetest.Key
}

// run runs the workflow.
func (f *Fake) run(w http.ResponseWriter, r *http.Request, session, input string) {
	f.mu.Lock()
	f.turns[session]++
	f.runs++
	n, reply := f.turns[session], f.reply
	f.mu.Unlock()
	words := Answer(n, input)
	object := func(key string) string {
		raw, _ := json.Marshal(map[string]string{key: words}) // it can be encoded
		return string(raw)
	}
	whole := servicetest.Reply{Type: "application/json; charset=utf-8", Broken: []byte(`{"output": "A`)}
	switch reply {
	case Streamed, FailsMid:
		f.lines(w, r, []rune(words), reply)
		return
	case Agent:
		whole.Body = []byte(object("output"))
	case Array:
		whole.Body = []byte("[" + object("output") + "]")
	case Text:
		whole.Body = []byte(object("text"))
	case Words:
		whole.Type, whole.Body = "text/plain; charset=utf-8", []byte(words)
	case Empty:
	}
	f.Send(w, r, f.Fault(), whole)
}

// lines streams an answer. What another node says is among it.
func (f *Fake) lines(w http.ResponseWriter, r *http.Request, words []rune, reply Reply) {
	const agent = "AI Agent"
	line := func(kind, content string) []byte {
		l := map[string]any{"type": kind, "metadata": map[string]any{"nodeId": agent, "nodeName": agent, "runIndex": 0, "itemIndex": 0}}
		if content != "" {
			l["content"] = content
		}
		raw, _ := json.Marshal(l) // it can be encoded
		return append(raw, '\n')
	}
	list := [][]byte{line("begin", ""), line("item", string(words[:4]))}
	if reply == FailsMid {
		list = append(list, line("error", "The model behind has failed"))
	} else {
		list = append(list, line("item", string(words[4:10])), line("item", string(words[10:])), line("end", ""))
	}
	f.Stream(w, r, f.Fault(), servicetest.Events{
		Type: "application/json; charset=utf-8", List: list, Pause: 3 * time.Millisecond, Broken: []byte(`{"type":"item","con` + "\n"), Filler: line("item", servicetest.More),
	})
}
