package fastgpt

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func ask(t *testing.T, f *Fake, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+"/api/v1/chat/completions", strings.NewReader(body))
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

func TestChats(t *testing.T) {
	f := New(t)
	query := `{"chatId":"c","stream":true,"detail":false,"messages":[{"role":"user","content":"hello there"}]}`
	for _, want := range []string{"er 1 t", "er 2 t"} {
		if _, got := ask(t, f, query); !strings.Contains(got, want) || !strings.Contains(got, "data: [DONE]") || strings.Contains(got, "event:") {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if _, got := ask(t, f, strings.Replace(query, `"detail":false`, `"detail":true`, 1)); !strings.Contains(got, "event: answer") || !strings.Contains(got, "event: flowResponses") {
		t.Errorf("%s", got)
	}
	if _, got := ask(t, f, strings.Replace(query, `"stream":true`, `"stream":false`, 1)); !strings.Contains(got, "Answer 4 to hello there.") {
		t.Errorf("%s", got)
	}
	f.Behave(Reasons)
	if _, got := ask(t, f, query); !strings.Contains(got, "reasoning_content") || !strings.Contains(got, "think") {
		t.Errorf("%s", got)
	}
	f.Behave(FailsMid)
	if _, got := ask(t, f, query); !strings.Contains(got, "event: error") || strings.Contains(got, "[DONE]") {
		t.Errorf("%s", got)
	}
}

func TestRefusals(t *testing.T) {
	f := New(t)
	for fault, want := range map[servicetest.Fault]string{servicetest.WrongKey: "unAuthApiKey", servicetest.NoMoney: "aiPointsNotEnough", servicetest.RateLimited: "tooManyRequest"} {
		f.Fail(fault)
		if status, got := ask(t, f, `{}`); status < 400 || !strings.Contains(got, want) {
			t.Errorf("%v: %d %s", fault, status, got)
		}
	}
}
