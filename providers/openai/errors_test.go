package openai

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/providers"
)

// A refusal says why, and does not quote what the user said.
func TestRefusalsInWords(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"no such model"}}`:   "no such model",
		`{"error":"no such model"}`:               "no such model",
		`{"object":"error","message":"too long"}`: "too long",
		`{"detail":"Not Found"}`:                  "Not Found",
		`{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"messages":[{"content":"my secret wish"}]}},{"loc":["body","n"],"msg":"not a number","input":"my secret wish"}]}`: "[body model] Field required; [body n] not a number",
		`{"detail":[]}`:      `{"detail":[]}`,
		`{"detail":{"a":1}}`: `{"detail":{"a":1}}`,
		`Bad Gateway`:        "Bad Gateway",
		``:                   "Unprocessable Entity",
	} {
		e := readStatus(&http.Response{StatusCode: http.StatusUnprocessableEntity, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))})
		if e.text != want {
			t.Errorf("%s: %q, want %q", body, e.text, want)
		}
	}
}

// Whatever a server sends with its refusal, there are words.
func FuzzRefusal(f *testing.F) {
	for _, body := range []string{`{"error":{"message":"m"}}`, `{"detail":[{"loc":["a",1],"msg":"b"}]}`, `{"detail":null}`, "\xff", ""} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := readStatus(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))})
		if strings.TrimSpace(e.text) == "" || e.kind != providers.BadRequest {
			t.Errorf("%q: %+v", body, e)
		}
	})
}
