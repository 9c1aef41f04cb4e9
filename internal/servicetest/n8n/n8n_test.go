package n8n

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func post(t *testing.T, f *Fake, path, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+path, strings.NewReader(`{"action":"sendMessage","sessionId":"d","chatInput":"hello there"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Webhook-Key", key)
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

func TestReplies(t *testing.T) {
	f := New(t)
	for reply, want := range map[Reply]string{
		Agent: `{"output":"Answer `, Streamed: `"type":"end"`, Array: `[{"output":`, Text: `{"text":`, Words: "Answer ", FailsMid: `"type":"error"`, Empty: "",
	} {
		f.Respond(reply)
		if status, got := post(t, f, "/webhook/"+ID+"/chat", servicetest.Key); status != 200 || !strings.Contains(got, want) || reply == Empty && got != "" {
			t.Errorf("%d: %d %s", reply, status, got)
		}
	}
	if f.Runs() != 7 {
		t.Errorf("%d runs", f.Runs())
	}
	f.Listen()
	for _, want := range []int{200, 404} {
		if status, got := post(t, f, "/webhook-test/"+ID, servicetest.Key); status != want {
			t.Errorf("%d %s", status, got)
		}
	}
	if status, got := post(t, f, "/webhook/other/chat", servicetest.Key); status != 404 || !strings.Contains(got, "not registered") {
		t.Errorf("%d %s", status, got)
	}
	if status, _ := post(t, f, "/webhook/"+ID, "wrong"); status != 403 {
		t.Error(status)
	}
}
