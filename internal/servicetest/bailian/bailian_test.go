package bailian

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func ask(t *testing.T, f *Fake, body string, stream bool) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+"/api/v1/apps/"+App+"/completion", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+servicetest.Key)
	if stream {
		req.Header.Set("X-DashScope-SSE", "enable")
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

func TestAnswers(t *testing.T) {
	f := New(t)
	prompt := `{"input":{"prompt":"hello there"},"parameters":{"incremental_output":true},"debug":{}}`
	_, got := ask(t, f, prompt, true)
	if !strings.Contains(got, `"text":"er 1 t"`) || !strings.Contains(got, `"finish_reason":"null"`) || !strings.Contains(got, ":HTTP_STATUS/200") || !strings.Contains(got, `"text":""`) {
		t.Errorf("%s", got)
	}
	_, session, _ := strings.Cut(got, `"session_id":"`)
	session, _, _ = strings.Cut(session, `"`)
	if _, got := ask(t, f, `{"input":{"prompt":"hello there","session_id":"`+session+`"}}`, true); !strings.Contains(got, `"text":"Answer 2 t"`) {
		t.Errorf("all so far: %s", got)
	}
	if _, got := ask(t, f, `{"input":{"prompt":"hello there","session_id":"mine"}}`, false); !strings.Contains(got, "Answer 1 to hello there.") {
		t.Errorf("a session of one's own: %s", got)
	}
	if status, got := ask(t, f, `{"input":{"session_id":"`+session+`","messages":[{}]}}`, true); status != 400 {
		t.Errorf("%s", got)
	}
	f.FailMidway()
	if status, got := ask(t, f, prompt, true); status != 200 || !strings.Contains(got, "event:error") {
		t.Errorf("%s", got)
	}
}

func TestRefusals(t *testing.T) {
	f := New(t)
	for known, want := range map[servicetest.Fault]string{
		servicetest.WrongKey: "InvalidApiKey", servicetest.NoMoney: "Arrearage", servicetest.RateLimited: "Throttling.RateQuota", servicetest.WrongModel: "App not found",
	} {
		f.Fail(known)
		if status, got := ask(t, f, `{"input":{"prompt":"x"}}`, true); status < 400 || !strings.Contains(got, want) {
			t.Errorf("%v: %d %s", known, status, got)
		}
	}
}
