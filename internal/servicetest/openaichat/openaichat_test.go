package openaichat

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, s *servicetest.Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/chat/completions", strings.NewReader(body))
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

// ask wraps messages in a request that may switch a lamp.
func ask(messages, more string) string {
	return `{"model":"m","stream":true,` + more + `"messages":[` + messages + `],"tools":[{"type":"function","function":{"name":"lamp","parameters":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}}]}`
}

const (
	hello = `{"role":"user","content":"hello"}`
	lamp  = `{"role":"user","content":"the lamp"}`
)

// turn is a call with an id and more members of the message, and its result.
func turn(id, more string) string {
	return lamp + `,{"role":"assistant","content":"",` + more + `"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"lamp","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"it is on"}`
}

func TestVendors(t *testing.T) {
	for v := OpenAI; v <= Kimi; v++ {
		s := As(t, v)
		if status, got := post(t, s, ask(hello, "")); status != 200 || !strings.Contains(got, "That is all.") && !strings.Contains(got, "all.") || !strings.Contains(got, `"stop"`) {
			t.Errorf("%d: %d %s", v, status, got)
		}
		if status, got := post(t, s, ask(lamp, "")); status != 200 || !strings.Contains(got, `"name":"lamp"`) {
			t.Errorf("%d: %d %s", v, status, got)
		}
		if status, got := post(t, Failing(t, v), ask(hello, "")); status == 200 && (strings.Contains(got, `"stop"`) || !strings.Contains(got, "error") && !strings.Contains(got, "base_resp") && !strings.Contains(got, "sensitive") && !strings.Contains(got, "insufficient")) {
			t.Errorf("%d: %d %s", v, status, got)
		}
		s.Fail(servicetest.NoMoney)
		if status, got := post(t, s, ask(hello, "")); status == 200 != (v == MiniMax) {
			t.Errorf("%d: %d %s", v, status, got)
		}
	}
}

func TestDemands(t *testing.T) {
	for name, c := range map[string]struct {
		v      Vendor
		body   string
		status int
	}{
		"thought missing": {DeepSeek, ask(turn("call_1", ""), ""), 400}, "thought": {DeepSeek, ask(turn("call_1", `"reasoning_content":"",`), ""), 200},
		"thinking off": {DeepSeek, ask(turn("call_1", ""), `"thinking":{"type":"disabled"},`), 200}, "long id": {Mistral, ask(turn("call_1", ""), ""), 400},
		"nine": {Mistral, ask(turn("aB3456789", ""), ""), 200}, "extra": {Mistral, ask(hello, `"thinking":{},`), 422}, "echo": {Groq, ask(turn("call_1", `"reasoning":"x",`), ""), 400},
		"temperature": {Kimi, ask(hello, `"temperature":0.5,`), 400}, "signature": {Gemini, ask(turn("c", ""), ""), 400}, "system": {GLM, ask(hello+`,{"role":"system","content":"x"}`, ""), 400},
		"result": {OpenAI, ask(`{"role":"tool","tool_call_id":"x","content":"y"}`, ""), 400}, "answered": {OpenAI, ask(turn("call_1", ""), ""), 200}, "choice": {OpenAI, `{"model":"m","tool_choice":"none","messages":[` + hello + `]}`, 400},
	} {
		if status, got := post(t, As(t, c.v), c.body); status != c.status {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
}
