package dify

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, f *Fake, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+servicetest.Key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

const query = `{"inputs":{},"query":"hello there","user":"u","response_mode":"streaming","conversation_id":""}`

func TestApps(t *testing.T) {
	f := New(t)
	for app, want := range map[App]string{
		Chatbot: "message_end", Agent: "agent_message", NewAgent: "Answer 1 to hello there.", Chatflow: "workflow_finished", FailedFlow: "node LLM failed",
		PausedFlow: "workflow_paused", Moderated: "message_replace", FailsMidway: "completion_request_error",
	} {
		f.Be(app)
		if got := text(t, post(t, f, "/v1/chat-messages", query)); !strings.Contains(got, want) || !strings.Contains(got, "event: ping\n\n") {
			t.Errorf("app %d: %s", app, got)
		}
	}
	f.Be(Workflow)
	if got := text(t, post(t, f, "/v1/workflows/run", `{"inputs":{"query":"hello there"},"user":"u","response_mode":"streaming"}`)); !strings.Contains(got, "text_chunk") || !strings.Contains(got, "outputs") {
		t.Error(got)
	}
}

func TestConversations(t *testing.T) {
	f := New(t)
	first := text(t, post(t, f, "/v1/chat-messages", query))
	_, id, _ := strings.Cut(first, `"conversation_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	again := strings.Replace(query, `"conversation_id":""`, `"conversation_id":"`+id+`"`, 1)
	if got := text(t, post(t, f, "/v1/chat-messages", again)); !strings.Contains(got, `"er 2 t"`) {
		t.Errorf("the second turn: %s", got)
	}
	f.Forget()
	if resp := post(t, f, "/v1/chat-messages", again); resp.StatusCode != 404 || !strings.Contains(text(t, resp), "Conversation Not Exists.") {
		t.Errorf("a forgotten conversation: %d", resp.StatusCode)
	}
	for body, want := range map[string]int{`{"query":"x","user":"u"}`: 400, `{"inputs":{},"query":"x"}`: 400, `{`: 400} {
		if resp := post(t, f, "/v1/chat-messages", body); resp.StatusCode != want {
			t.Errorf("%s: %d", body, resp.StatusCode)
		}
	}
}

// An answer ends for its own user, and not because its reader has gone.
func TestStop(t *testing.T) {
	f := New(t)
	resp := post(t, f, "/v1/chat-messages", strings.Replace(query, "hello", "a long one", 1))
	lines := bufio.NewScanner(resp.Body)
	task := ""
	for task == "" && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), `"task_id":"`); ok {
			task, _, _ = strings.Cut(after, `"`)
		}
	}
	text(t, post(t, f, "/v1/chat-messages/"+task+"/stop", `{"user":"another"}`))
	if f.Running() != 1 {
		t.Error("another user has stopped it")
	}
	began := time.Now()
	text(t, post(t, f, "/v1/chat-messages/"+task+"/stop", `{"user":"u"}`))
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), "message_end") || time.Since(began) > time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	if got := f.Stops(); len(got) != 2 || got[1].User != "u" || f.Running() != 0 {
		t.Errorf("%+v, %d run", got, f.Running())
	}
}

func TestFaults(t *testing.T) {
	f := New(t)
	for fault, want := range map[servicetest.Fault]string{
		servicetest.WrongKey: "unauthorized", servicetest.NoMoney: "provider_quota_exceeded", servicetest.RateLimited: "too_many_requests",
		servicetest.WrongModel: "model_currently_not_support", servicetest.Broken: `"mess`,
	} {
		f.Fail(fault)
		if got := text(t, post(t, f, "/v1/chat-messages", query)); !strings.Contains(got, want) {
			t.Errorf("%v: %s", fault, got)
		}
	}
	f.Fail(servicetest.RateLimited)
	f.LimitHard()
	if got := text(t, post(t, f, "/v1/chat-messages", query)); !strings.Contains(got, "rate_limit_error") {
		t.Error(got)
	}
}
