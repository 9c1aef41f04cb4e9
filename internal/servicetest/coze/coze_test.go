package coze

import (
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

func query(words string) string {
	return `{"bot_id":"` + Bot + `","user_id":"u","stream":true,"additional_messages":[{"role":"user","type":"question","content_type":"text","content":"` + words + `"}]}`
}

// between is what stands between two marks.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

func TestChats(t *testing.T) {
	f := New(t)
	first := text(t, post(t, f, "/v3/chat", query("hello there")))
	for _, want := range []string{"event:conversation.chat.created", `"type":"follow_up"`, `"type":"verbose"`, "data:\"[DONE]\"", `"content":"er 1 t"`} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in %s", want, first)
		}
	}
	id := between(first, `"conversation_id":"`, `"`)
	if got := text(t, post(t, f, "/v3/chat?conversation_id="+id, query("hello there"))); !strings.Contains(got, `"content":"er 2 t"`) {
		t.Errorf("the second turn: %s", got)
	}
	inBody := strings.Replace(query("hello there"), "{", `{"conversation_id":"`+id+`",`, 1)
	if got := text(t, post(t, f, "/v3/chat", inBody)); !strings.Contains(got, `"content":"er 1 t"`) {
		t.Errorf("a conversation in the body counts: %s", got)
	}
	f.Forget()
	if got := text(t, post(t, f, "/v3/chat?conversation_id="+id, query("hello there"))); !strings.Contains(got, `"code":4200`) {
		t.Errorf("a forgotten conversation: %s", got)
	}
	for b, want := range map[Behaviour]string{NoDone: "chat.completed", Debug: "debug_url", Fails: `"code":5000`} {
		f.Behave(b)
		if got := text(t, post(t, f, "/v3/chat", query("hello there"))); !strings.Contains(got, want) || b == NoDone && strings.Contains(got, "done\n") {
			t.Errorf("%d: %s", b, got)
		}
	}
}

func TestToolOfTheClient(t *testing.T) {
	f := New(t)
	f.Behave(Tool)
	got := text(t, post(t, f, "/v3/chat", query("lamp on")))
	at := "?conversation_id=" + between(got, `"conversation_id":"`, `"`) + "&chat_id=" + between(got, `"id":"`, `"`)
	if !strings.Contains(got, "requires_action") || f.Running() != 1 {
		t.Fatalf("%s", got)
	}
	got = text(t, post(t, f, "/v3/chat/submit_tool_outputs"+at, `{"stream":true,"tool_outputs":[{"tool_call_id":"`+toolCall+`","output":"it is on"}]}`))
	if !strings.Contains(got, `"content":"it is on"`) || f.Running() != 0 {
		t.Errorf("%s", got)
	}
}

// A conversation is busy until its chat is over or cancelled, also without a reader.
func TestBusyUntilCancelled(t *testing.T) {
	f := New(t)
	resp := post(t, f, "/v3/chat", query("a long one"))
	head := make([]byte, 400)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	id, chat := between(string(head), `"conversation_id":"`, `"`), between(string(head), `"id":"`, `"`)
	if got := text(t, post(t, f, "/v3/chat?conversation_id="+id, query("and now"))); !strings.Contains(got, `"code":4009`) {
		t.Errorf("not busy: %s", got)
	}
	if got := text(t, post(t, f, "/v3/chat/cancel", `{"conversation_id":"`+id+`","chat_id":"`+chat+`"}`)); !strings.Contains(got, "canceled") {
		t.Errorf("not cancelled: %s", got)
	}
	began := time.Now()
	if got := text(t, post(t, f, "/v3/chat?conversation_id="+id, query("and now"))); !strings.Contains(got, `"content":"er 2 t"`) || time.Since(began) > time.Second || f.Cancels() != 1 {
		t.Errorf("still busy: %s", got)
	}
}

func TestRefusals(t *testing.T) {
	f := New(t)
	for fault, want := range map[servicetest.Fault]string{
		servicetest.WrongKey: `"code":4100`, servicetest.NoMoney: `"code":4028`, servicetest.RateLimited: `"code":4013`, servicetest.WrongModel: `"code":4200`,
	} {
		f.Fail(fault)
		resp := post(t, f, "/v3/chat", query("hello there"))
		if got := text(t, resp); resp.StatusCode != 200 || !strings.Contains(got, want) || !strings.Contains(got, "logid") {
			t.Errorf("%v: %d %s", fault, resp.StatusCode, got)
		}
	}
}
