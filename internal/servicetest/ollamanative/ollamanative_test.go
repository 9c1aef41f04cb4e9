package ollamanative

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, s *servicetest.Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/chat", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
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

// ask wraps messages in a request that may switch a lamp.
func ask(messages, more string) string {
	return `{"model":"qwen3:4b",` + more + `"messages":[` + messages + `],"tools":[{"type":"function","function":{"name":"lamp","parameters":{"type":"object"}}}]}`
}

func TestChat(t *testing.T) {
	s := New(t)
	const hello, lamp = `{"role":"user","content":"hello"}`, `{"role":"user","content":"the lamp"}`
	const result = lamp + `,{"role":"assistant","content":"","tool_calls":[{"function":{"name":"lamp","arguments":{}}}]},{"role":"tool","tool_name":"lamp","content":"the lamp is on"}`
	for name, c := range map[string]struct {
		body, want string
		status     int
	}{
		"text": {ask(hello, ""), `"done_reason":"stop"`, 200}, "thoughts": {ask(hello, `"think":true,`), `"thinking":"The u`, 200}, "call": {ask(lamp, `"think":false,`), `"arguments":{}`, 200},
		"result": {ask(result, ""), `"content":"I heard: th`, 200}, "load": {`{"model":"qwen3:4b","messages":[],"keep_alive":"10m"}`, `"done_reason":"load"`, 200}, "whole": {ask(hello, `"stream":false,`), "That is all.", 200},
		"think": {ask(hello, `"think":"x",`), "invalid think", 400}, "arguments": {ask(strings.Replace(result, `"arguments":{}`, `"arguments":"{}"`, 1), ""), "error", 400}, "model": {`{"messages":[]}`, "model is required", 400},
	} {
		if status, got := post(t, s, c.body); status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	if status, got := post(t, NewMode(t, Fails), ask(hello, "")); status != 200 || !strings.HasSuffix(got, "-1\"}\n") {
		t.Errorf("%d %s", status, got)
	}
	for _, mode := range []Mode{Thinkless, Toolless} {
		if status, got := post(t, NewMode(t, mode), ask(hello, `"think":true,`)); status != 400 || !strings.Contains(got, "does not support") {
			t.Errorf("%d %s", status, got)
		}
	}
	s.Fail(servicetest.WrongModel)
	if status, got := post(t, s, ask(hello, "")); status != 404 || !strings.Contains(got, "'qwen3:4b' not found") {
		t.Errorf("%d %s", status, got)
	}
}
