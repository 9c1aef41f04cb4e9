package gemini

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, s *servicetest.Server, query, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1beta/models/gemini-3.5-flash-lite:streamGenerateContent"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", servicetest.Key)
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

// ask wraps contents in a request that may switch a lamp.
func ask(contents string) string {
	return `{"contents":[` + contents + `],"tools":[{"functionDeclarations":[{"name":"lamp","parametersJsonSchema":{"type":"object","additionalProperties":false}}]}]}`
}

func TestGenerate(t *testing.T) {
	s := New(t)
	const hello, lamp, sse = `{"role":"user","parts":[{"text":"hello"}]}`, `{"role":"user","parts":[{"text":"the lamp"}]}`, "?alt=sse"
	if status, got := post(t, s, sse, ask(hello)); status != 200 || !strings.Contains(got, `"text":"I heard`) || !strings.Contains(got, "STOP") {
		t.Errorf("%d %s", status, got)
	}
	if status, got := post(t, s, "", ask(hello)); status != 200 || !strings.HasPrefix(got, "[{") || !strings.HasSuffix(got, "}]\n") {
		t.Errorf("%d %s", status, got)
	}
	if status, got := post(t, s, sse, ask(lamp)); status != 200 || !strings.Contains(got, `"functionCall":{"args":{},"name":"lamp"}`) || !strings.Contains(got, sign("lamp")) {
		t.Errorf("%d %s", status, got)
	}
	turn := lamp + `,{"role":"model","parts":[{"functionCall":{"name":"lamp","args":{}},"thoughtSignature":"` + sign("lamp") + `"}]}`
	const result = `,{"role":"user","parts":[{"functionResponse":{"name":"lamp","response":{"output":"it is on"}}}]}`
	if status, got := post(t, s, sse, ask(turn+result)); status != 200 || !strings.Contains(got, "STOP") {
		t.Errorf("%d %s", status, got)
	}
	for name, bad := range map[string]string{
		"signature": ask(strings.Replace(turn, sign("lamp"), "", 1) + result), "no result": ask(turn), "other": ask(turn + "," + hello), "empty": ask(`{"role":"user","parts":[{"text":""}]}`), "role": ask(`{"role":"system","parts":[{"text":"x"}]}`),
		"schema": strings.Replace(ask(hello), "parametersJsonSchema", "parameters", 1), "unknown": strings.Replace(ask(hello), `"tools"`, `"tool"`, 1),
	} {
		if status, got := post(t, s, sse, bad); status != 400 || !strings.Contains(got, "INVALID_ARGUMENT") {
			t.Errorf("%s: %d %s", name, status, got)
		}
	}
	for fault, want := range map[servicetest.Fault]int{servicetest.WrongKey: 400, servicetest.WrongModel: 404, servicetest.RateLimited: 429} {
		s.Fail(fault)
		if status, got := post(t, s, "", ask(hello)); status != want || !strings.HasPrefix(got, `[{"error"`) {
			t.Errorf("%s: %d %s", fault, status, got)
		}
	}
	for mode, want := range map[Mode]string{Blocked: "blockReason", Safety: "SAFETY", Torn: "MALFORMED", Busy: "UNAVAILABLE"} {
		if _, got := post(t, NewMode(t, mode), sse, ask(hello)); !strings.Contains(got, want) {
			t.Error(got)
		}
	}
}
