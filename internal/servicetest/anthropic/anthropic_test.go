package anthropic

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, s *servicetest.Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", servicetest.Key)
	req.Header.Set("Anthropic-Version", "2023-06-01")
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

// ask wraps messages in a request that thinks and may switch a lamp.
func ask(messages string) string {
	return `{"model":"claude-haiku-4-5","max_tokens":2048,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},"tools":[{"name":"lamp","input_schema":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}],"messages":[` + messages + `]}`
}

func TestMessages(t *testing.T) {
	s := New(t)
	const hello, lamp = `{"role":"user","content":"hello"}`, `{"role":"user","content":"the lamp"}`
	if status, got := post(t, s, ask(hello)); status != 200 || !strings.Contains(got, `"text":"I heard`) || !strings.Contains(got, sign("The user says: hello")) || !strings.Contains(got, "event: message_stop") {
		t.Errorf("%d %s", status, got)
	}
	if status, got := post(t, s, ask(lamp)); status != 200 || !strings.Contains(got, `"name":"lamp"`) || !strings.Contains(got, `"tool_use"`) {
		t.Errorf("%d %s", status, got)
	}
	const use, result = `{"type":"tool_use","id":"toolu_1","name":"lamp","input":{"on":true}}`, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"it is on"}]}`
	signed := `{"type":"thinking","thinking":"x","signature":"` + sign("x") + `"},`
	turn := func(blocks string) string { return lamp + `,{"role":"assistant","content":[` + blocks + `]}` }
	if status, got := post(t, s, ask(turn(signed+use)+result)); status != 200 || !strings.Contains(got, "end_turn") {
		t.Errorf("%d %s", status, got)
	}
	for name, bad := range map[string]string{
		"no result": ask(turn(signed+use) + "," + hello), "at the end": ask(turn(signed + use)), "no thought": ask(turn(use) + result), "changed": ask(turn(strings.Replace(signed, `"x"`, `"y"`, 1)+use) + result),
		"system": ask(`{"role":"system","content":"s"},` + hello), "limit": strings.Replace(ask(hello), `"max_tokens":2048,`, "", 1), "unknown": strings.Replace(ask(hello), `"stream"`, `"streams"`, 1), "empty": ask(`{"role":"user","content":""}`),
	} {
		if status, got := post(t, s, bad); status != 400 || !strings.Contains(got, "invalid_request_error") {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	for fault, want := range map[servicetest.Fault]int{servicetest.WrongKey: 401, servicetest.NoMoney: 402, servicetest.WrongModel: 404, servicetest.RateLimited: 429} {
		s.Fail(fault)
		if status, got := post(t, s, ask(hello)); status != want {
			t.Errorf("%s: %d %s", fault, status, got)
		}
	}
	if status, _ := post(t, NewMode(t, Busy), ask(hello)); status != 529 {
		t.Error(status)
	}
	if _, got := post(t, NewMode(t, Overloaded), ask(hello)); !strings.Contains(got, "overloaded_error") || strings.Contains(got, "message_stop") {
		t.Error(got)
	}
	if _, got := post(t, NewMode(t, Refuses), ask(hello)); !strings.Contains(got, `"refusal"`) {
		t.Error(got)
	}
}
