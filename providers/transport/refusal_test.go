package transport

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
		e := ReadRefusal(&http.Response{StatusCode: http.StatusUnprocessableEntity, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))})
		if e.Text != want {
			t.Errorf("%s: %q, want %q", body, e.Text, want)
		}
	}
}

// Whatever a server sends with its refusal, there are words.
func FuzzRefusal(f *testing.F) {
	for _, body := range []string{`{"error":{"message":"m"}}`, `{"detail":[{"loc":["a",1],"msg":"b"}]}`, `{"detail":null}`, "\xff", ""} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := ReadRefusal(&http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))})
		if strings.TrimSpace(e.Text) == "" || e.Kind != providers.BadRequest {
			t.Errorf("%q: %+v", body, e)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	const date = "Wed, 21 Oct 2026 07:28:00 GMT"
	soon := time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)
	for in, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "1e9": 0, date: 0, "NaN": 0, soon: 30 * time.Second, "soon": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {in}}); (got-want).Abs() > 2*time.Second || (got == 0) != (want == 0) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
	for want, h := range map[time.Duration]http.Header{
		2 * time.Second:        {"Retry-After": {date}, "Date": {"Wed, 21 Oct 2026 07:27:58 GMT"}}, // its clock counts, not ours
		300 * time.Millisecond: {"Retry-After": {"1"}, "Retry-After-Ms": {"300"}},
		0:                      {"Retry-After": {date}, "Date": {date}},
	} {
		if got := retryAfter(h); got != want {
			t.Errorf("%v: %v, want %v", h, got, want)
		}
	}
}
