package platform

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// plain is a protocol of words: "name" begins a dialogue, "end" ends an answer.
type plain struct{ base string }

func (p plain) Request(ctx context.Context, t *Turn) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/ask?talk="+t.Talk, strings.NewReader(t.NewestText()))
}

func (p plain) Stop(ctx context.Context, t *Turn) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodPost, p.base+"/stop?talk="+t.Talk+"&run="+t.Run, nil)
}

func (plain) Judge(r *transport.Refusal) bool { return r.Status == http.StatusNotFound }

func (plain) Answer(t *Turn) generation.Answer { return &words{t} }

type words struct{ t *Turn }

func (w *words) Event(e sse.Event, give generation.Give) (bool, error) {
	switch kind, rest, _ := strings.Cut(string(e.Data), " "); kind {
	case "name":
		w.t.Talk, w.t.Run = rest, "run-"+rest
	case "say":
		give(providers.Delta{Text: rest})
	case "end":
		return true, nil
	}
	return false, nil
}

func (w *words) EOF(generation.Give) error { return generation.ErrIncomplete }

func (w *words) End(generation.Give) error { return nil }

// server speaks it.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // in order, with what was stopped
	slow   time.Duration
	refuse bool // every dialogue is gone
	lost   bool // those that have begun are
	short  bool // answers break off
	said   string
	names  int
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	said, _ := io.ReadAll(r.Body)
	talk := r.URL.Query().Get("talk")
	s.mu.Lock()
	if r.URL.Path == "/stop" {
		slow := s.slow
		s.mu.Unlock()
		select {
		case <-time.After(slow):
		case <-r.Context().Done():
		}
		s.mu.Lock()
	}
	s.asked = append(s.asked, strings.TrimPrefix(r.URL.Path, "/")+" "+talk)
	gone := (s.refuse || s.lost && talk != "") && r.URL.Path == "/ask"
	s.said = string(said)
	if talk == "" {
		s.names++
		talk = fmt.Sprintf("t%d", s.names)
	}
	s.mu.Unlock()
	if gone {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	reply := "data: name " + talk + "\n\ndata: say a\n\ndata: say <think>b</think>c\n\ndata: end\n\n"
	if s.short {
		reply = strings.TrimSuffix(reply, "data: end\n\n")
	}
	_, _ = io.WriteString(w, reply)
}

func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.Join(s.asked, ", ")
	s.asked = nil
	return out
}

func (s *server) model(idle time.Duration) *Model {
	return New(Options{Options: generation.Options{Account: transport.Account{Name: "x"}, Client: s.Client()}, Idle: idle}, plain{s.URL})
}

func ask(device, talk string) providers.LLMRequest {
	return providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}, DeviceID: device, Conversation: talk}
}

func read(ctx context.Context, m *Model, req providers.LLMRequest) (text string, failed error) {
	for d, err := range m.Generate(ctx, req) {
		text, failed = text+d.Text, err
	}
	return text, failed
}

// TestCloseWaits: the request that stops an answer has an owner.
func TestCloseWaits(t *testing.T) {
	s := serve(t)
	s.slow = 50 * time.Millisecond
	m := s.model(0)
	for range m.Generate(t.Context(), ask("a", "")) {
		break
	}
	if err := m.Close(); err != nil || s.log() != "ask , stop t1" {
		t.Errorf("error %v", err)
	}
	for range m.Generate(t.Context(), ask("a", "")) {
		break
	}
	if got := s.log(); got != "ask t1" {
		t.Errorf("after the end: %s", got)
	}
}

func TestTalks(t *testing.T) {
	s := serve(t)
	m := s.model(0)
	if can := m.Capabilities(); !can.Stateful || !can.NoTrials || !can.NoHedge {
		t.Errorf("%+v", can)
	}
	for _, req := range []providers.LLMRequest{ask("a", ""), ask("b", ""), ask("a", ""), ask("a", "new"), ask("", ""), ask("", "")} {
		if text, err := read(t.Context(), m, req); text != "ac" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
	if got := s.log(); got != "ask , ask , ask t1, ask , ask , ask " {
		t.Error(got)
	}
	s.refuse = true // it is asked once more, and no oftener
	if _, err := read(t.Context(), m, ask("a", "")); err == nil {
		t.Error("a refusal is an answer")
	}
	if got := s.log(); got != "ask t1, ask " {
		t.Error(got)
	}
	s.refuse = false
	m = s.model(20 * time.Millisecond)
	for range 2 {
		_, _ = read(t.Context(), m, ask("a", ""))
		time.Sleep(40 * time.Millisecond)
	}
	if got := s.log(); got != "ask , ask " {
		t.Errorf("after the idle time: %s", got)
	}
	for i := range maxTalks + 10 {
		m.talks.keep(fmt.Sprint(i), &Turn{Talk: "x"})
	}
	if n := m.talks.known.Len(); n > maxTalks {
		t.Errorf("%d are remembered", n)
	}
}

// What is left is stopped before the next turn of the dialogue, which does not wait for
// long; others do not wait at all.
func TestStop(t *testing.T) {
	s := serve(t)
	m := s.model(0)
	leave := func() {
		for range m.Generate(t.Context(), ask("a", "")) {
			break
		}
	}
	s.slow = 50 * time.Millisecond
	leave()
	if _, err := read(t.Context(), m, ask("a", "")); err != nil {
		t.Error(err)
	}
	if got := s.log(); got != "ask , stop t1, ask t1" {
		t.Error(got)
	}
	s.mu.Lock()
	s.slow = time.Minute
	s.mu.Unlock()
	leave()
	began := time.Now()
	if _, err := read(t.Context(), m, ask("b", "")); err != nil || time.Since(began) > stopPause/2 {
		t.Errorf("another device: %v after %v", err, time.Since(began))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := read(ctx, m, ask("a", "")); err != context.DeadlineExceeded { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
	if _, err := read(t.Context(), m, ask("a", "")); err != nil || time.Since(began) > 2*stopPause {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// A device is named by what tells nothing of it.
func TestNames(t *testing.T) {
	var users, own []string
	talks := newTalks(time.Hour)
	for _, req := range []providers.LLMRequest{ask("24:6f:28", "x"), ask("24:6f:28", "y"), ask("24:6f:29", "x")} {
		turn := talks.turn(keyOf(req), req)
		users, own = append(users, turn.User), append(own, turn.Own)
	}
	if users[0] != users[1] || users[0] == users[2] || strings.Contains(users[0], "24:6f") || len(slices.Compact(slices.Sorted(slices.Values(own)))) != 3 {
		t.Errorf("%q, %q", users, own)
	}
}

// After a restart a dialogue goes on whose trace is in the history, with the same agent only and not for ever.
func TestDialoguesOutliveTheProgram(t *testing.T) {
	t.Parallel()
	s := serve(t)
	said := ask("d", "1")
	said.AgentID = "a"
	before := providers.Message{Role: providers.RoleAssistant, Content: "ac"}
	for d, err := range s.model(0).Generate(t.Context(), said) {
		if err != nil {
			t.Fatal(err)
		}
		before.Echo = d.Echo
	}
	said.Messages = append([]providers.Message{{Role: providers.RoleUser, Content: "hi"}, before}, said.Messages...)
	other := said
	other.AgentID = "b"
	for _, c := range []struct {
		m    *Model
		req  providers.LLMRequest
		want string
	}{{s.model(0), said, "ask t1"}, {s.model(0), other, "ask "}, {s.model(time.Nanosecond), said, "ask "}} {
		s.log()
		if text, err := read(t.Context(), c.m, c.req); err != nil || text != "ac" || s.log() != c.want {
			t.Errorf("%q, %v, want %q", text, err, c.want)
		}
	}
}

// An answer whose stream has broken off goes on at the service: it is stopped there.
func TestBrokenAnswersAreStopped(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.short = true
	m := s.model(0)
	if text, err := read(t.Context(), m, ask("d", "1")); err == nil || text != "ac" {
		t.Errorf("%q, %v", text, err)
	}
	if err := m.Close(); err != nil || s.log() != "ask , stop t1" {
		t.Errorf("it was not stopped: %v", err)
	}
}

// A dialogue that is lost begins again, with what was said before.
func TestLostDialoguesBeginAgain(t *testing.T) {
	t.Parallel()
	s := serve(t)
	m, said := s.model(0), ask("d", "1")
	said.Language = "en"
	if _, err := read(t.Context(), m, said); err != nil || s.said != "hi" {
		t.Errorf("%q, %v", s.said, err)
	}
	s.lost = true
	said.Messages = append([]providers.Message{{Role: providers.RoleUser, Content: "hi"}, {Role: providers.RoleAssistant, Content: "ac"}}, said.Messages...)
	text, err := read(t.Context(), m, said)
	if told := s.said; err != nil || text != "ac" || s.log() != "ask , ask t1, ask " || !strings.Contains(told, "U: hi\nA: ac\n") || !strings.HasSuffix(told, "hi") {
		t.Errorf("%q, %v, told %q", text, err, told)
	}
}

// A service that has lost a dialogue is told what was said last with the words that begin another.
func TestLostDialoguesAreRetold(t *testing.T) {
	t.Parallel()
	say := func(role providers.Role, words string) providers.Message {
		return providers.Message{Role: role, Content: words}
	}
	turn := &Turn{LLMRequest: providers.LLMRequest{Language: "en", Messages: []providers.Message{say(providers.RoleUser, "and now?")}}}
	if err := turn.retell(); err != nil || turn.NewestText() != "and now?" {
		t.Errorf("nothing was said before: %q, %v", turn.NewestText(), err)
	}
	for range 9 {
		turn.Before = append(turn.Before, say(providers.RoleUser, "My cat is\nTom. "+strings.Repeat("x", 2000)), say(providers.RoleTool, "secret"), say(providers.RoleAssistant, "Hello Tom!"))
	}
	turn.Before = append(turn.Before, say(providers.RoleUser, "a note"))
	kept := turn.Messages
	err := turn.retell()
	told := turn.NewestText()
	if err != nil || strings.Count(told, "\nU: My cat is Tom.") != 4 || strings.Count(told, "\nA: Hello Tom!") != 4 || !strings.HasSuffix(told, "and now?") ||
		strings.Contains(told, "secret") || strings.Contains(told, "a note") || len(told) > 5000 || kept[0].Content != "and now?" {
		t.Errorf("%v: %s", err, told)
	}
}
