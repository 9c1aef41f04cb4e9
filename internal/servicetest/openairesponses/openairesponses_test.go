package openairesponses

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, s *servicetest.Server, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/responses", strings.NewReader(body))
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

// ask wraps items in a request that may switch a lamp.
func ask(items string) string {
	return `{"model":"gpt-5.4-nano","stream":true,"reasoning":{"effort":"low"},"input":[` + items + `],"tools":[{"type":"function","name":"lamp","parameters":{"type":"object"}}]}`
}

func TestResponses(t *testing.T) {
	s := New(t)
	const hello, lamp = `{"role":"user","content":"hello"}`, `{"role":"user","content":[{"type":"input_text","text":"the lamp"}]}`
	const call, result = `,{"type":"function_call","call_id":"call_0","name":"lamp","arguments":"{}"}`, `,{"type":"function_call_output","call_id":"call_0","output":"the lamp is on"}`
	for name, c := range map[string]struct {
		body, want string
		status     int
	}{
		"text": {ask(hello), "event: response.completed", 200}, "call": {ask(lamp), `"call_id":"call_0"`, 200}, "result": {ask(lamp + call + result), "event: response.output_text.done", 200},
		"no result": {ask(lamp + call), "No tool output", 400}, "no call": {ask(lamp + result), "No tool call", 400}, "messages": {`{"model":"m","messages":[]}`, "Unsupported", 400},
		"nested": {strings.Replace(ask(hello), `"name":"lamp"`, `"function":{"name":"lamp"}`, 1), "tools[0].name", 400}, "part": {ask(strings.Replace(lamp, "input_text", "text", 1)), "Invalid value", 400},
		"echo": {ask(hello + `,{"role":"assistant","content":[{"type":"output_text","text":"x"}]},{"role":"user","content":"on"}`), "I heard: on", 200},
	} {
		status, got := post(t, s, c.body)
		if name == "echo" {
			c.want = `"text":"I heard: on`
		}
		if status != c.status || !strings.Contains(got, c.want) {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	for mode, want := range map[Mode]string{Fails: "response.failed", Errs: `"type":"error"`, Incomplete: "max_output_tokens", Endless: "response.output_item.done"} {
		if _, got := post(t, NewMode(t, mode), ask(hello)); !strings.Contains(got, want) || strings.Contains(got, "response.completed") {
			t.Error(got)
		}
	}
	for fault, want := range map[servicetest.Fault]int{servicetest.WrongKey: 401, servicetest.NoMoney: 429, servicetest.WrongModel: 404} {
		s.Fail(fault)
		if status, got := post(t, s, ask(hello)); status != want {
			t.Errorf("%d %s", status, got)
		}
	}
}
