package ragflow

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func ask(t *testing.T, f *Fake, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URL()+"/api/v1/"+path, strings.NewReader(body))
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
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(path, resp.StatusCode, err)
	}
	return string(text)
}

func TestAnswers(t *testing.T) {
	f := New(t)
	got := ask(t, f, "chat/completions", `{"chat_id":"`+Chat+`","question":"hello there","stream":true}`)
	if !strings.Contains(got, `"answer":"er 1 t"`) || !strings.Contains(got, `"data":true`) || !strings.HasPrefix(got, "data:{") {
		t.Errorf("%s", got)
	}
	_, id, _ := strings.Cut(got, `"session_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	f.Accumulate()
	got = ask(t, f, "chat/completions", `{"chat_id":"`+Chat+`","session_id":"`+id+`","messages":[{"role":"user","content":"hello there"}]}`)
	if !strings.Contains(got, `"answer":"Answer 2 t"`) {
		t.Errorf("%s", got)
	}
	f.Forget()
	for path, c := range map[string][2]string{
		"chat/completions":                           {`{"chat_id":"` + Chat + `","session_id":"` + id + `","question":"x"}`, `"code":102`},
		"agents/chat/completions":                    {`{"agent_id":"` + Agent + `","query":"hello there","stream":true}`, "data:[DONE]"},
		"openai/" + Chat + "/chat/completions":       {`{"messages":[{"role":"user","content":"hello there"}]}`, `"content":"er 1 t"`},
		"chats_openai/" + Chat + "/chat/completions": {`{"messages":[]}`, `"code":102`},
		"retrieval":                   {`{"question":"where"}`, "document_keyword"},
		"chats/" + Chat + "/sessions": {`{"name":"s"}`, `"id":"`},
	} {
		if got := ask(t, f, path, c[0]); !strings.Contains(got, c[1]) {
			t.Errorf("%s: %s", path, got)
		}
	}
	f.Fail(servicetest.WrongKey)
	if got := ask(t, f, "chat/completions", `{}`); !strings.Contains(got, `"code":109`) {
		t.Errorf("%s", got)
	}
}
