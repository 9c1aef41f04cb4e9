package homeassistant

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, f *Fake, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+"/api/conversation/process", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+servicetest.Key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestREST(t *testing.T) {
	f := New(t)
	_, got := post(t, f, `{"text":"hello there","language":"en"}`)
	_, id, _ := strings.Cut(got, `"conversation_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if !strings.Contains(got, "Answer 1 to hello there.") {
		t.Errorf("%s", got)
	}
	again := `{"text":"hello there","conversation_id":"` + id + `"}`
	for b, want := range map[Behaviour]string{Answers: "Answer", SSML: "ssml", Silent: "action_done", NoIntent: "no_intent_match", Asks: `"continue_conversation":true`} {
		f.Behave(b)
		if status, got := post(t, f, again); status != 200 || !strings.Contains(got, want) || !strings.Contains(got, id) {
			t.Errorf("%d: %s", b, got)
		}
	}
	f.Forget()
	if _, got := post(t, f, again); strings.Contains(got, id) {
		t.Errorf("a forgotten conversation goes on: %s", got)
	}
	for _, body := range []string{`{`, `{}`, `{"text":"x","agent_id":"conversation.other"}`} {
		if status, _ := post(t, f, body); status != 400 {
			t.Errorf("%s: %d", body, status)
		}
	}
	f.Fail(servicetest.WrongKey)
	if status, got := post(t, f, again); status != 401 || !strings.HasPrefix(got, "401") {
		t.Errorf("%d %s", status, got)
	}
}

func dial(t *testing.T, f *Fake, key string) (*websocket.Conn, string) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(f.WS()+"/api/websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_ = c.WriteJSON(map[string]string{"type": "auth", "access_token": key})
	return c, next(t, c) + next(t, c)
}

func next(t *testing.T, c *websocket.Conn) string {
	t.Helper()
	_, raw, err := c.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSocket(t *testing.T) {
	f := New(t)
	if _, got := dial(t, f, "wrong"); !strings.Contains(got, "auth_invalid") {
		t.Error(got)
	}
	c, got := dial(t, f, servicetest.Key)
	if !strings.Contains(got, "auth_ok") {
		t.Fatal(got)
	}
	_ = c.WriteJSON(map[string]any{"id": 1, "type": "assist_pipeline/run", "start_stage": "intent", "end_stage": "intent", "input": map[string]string{"text": "hello there"}})
	all := ""
	for !strings.Contains(all, "run-end") {
		all += next(t, c)
	}
	for _, want := range []string{"intent-start", `"content":"er 1 t"`, "tool_calls", "Answer 1 to hello there.", "conversation_id"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	_ = c.WriteJSON(map[string]any{"id": 1, "type": "ping"})
	if got := next(t, c); !strings.Contains(got, "id_reuse") {
		t.Error(got)
	}
	_ = c.WriteJSON(map[string]any{"id": 2, "type": "assist_pipeline/run"})
	if got := next(t, c); !strings.Contains(got, "invalid_format") {
		t.Error(got)
	}
}
