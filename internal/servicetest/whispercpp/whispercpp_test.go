package whispercpp

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

// ask posts a clip and returns the status and the body of the answer.
func ask(t *testing.T, s *servicetest.Server, field string, clip []byte, more map[string]string) (int, string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, _ := form.CreateFormFile(field, "a.wav")
	_, _ = part.Write(clip)
	for k, v := range more {
		_ = form.WriteField(k, v)
	}
	_ = form.Close()
	resp, err := http.Post(s.URL()+Path, form.FormDataContentType(), &body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

func TestServerHearsAClip(t *testing.T) {
	s := New(t)
	tone := servicetest.Speech("abc", 16000)
	clip := append(servicetest.WAV(16000, uint32(len(tone))), tone...)
	silence := append(servicetest.WAV(16000, 3200), make([]byte, 3200)...)
	first, second := servicetest.Halves()
	tests := map[string]struct {
		fault  servicetest.Fault
		field  string
		clip   []byte
		more   map[string]string
		status int
		want   string
	}{
		"speech":       {0, "file", clip, nil, 200, " " + servicetest.Words + "\n"},
		"two segments": {servicetest.Parts, "file", clip, nil, 200, " " + first + "\n " + second + "\n"},
		"silence":      {0, "file", silence, nil, 200, " [BLANK_AUDIO]\n"},
		"quiet":        {0, "file", silence, map[string]string{"suppress_nst": "true"}, 200, ""},
		"verbose":      {0, "file", clip, map[string]string{"response_format": "verbose_json"}, 200, " " + servicetest.Words + "\n"},
		"no file":      {0, "audio", clip, nil, 400, ""},
		"no wav":       {0, "file", tone, nil, 400, ""},
		"loading":      {servicetest.RateLimited, "file", clip, nil, 503, ""},
	}
	for name, test := range tests {
		s.Fail(test.fault)
		status, body := ask(t, s, test.field, test.clip, test.more)
		var got struct {
			Text  string
			Error string
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != test.status || got.Text != test.want || (got.Error != "") != (status != 200) {
			t.Errorf("%s: %d %q, error %v, want %d %q", name, status, body, err, test.status, test.want)
		}
	}
	s.Fail(servicetest.None)
	if _, body := ask(t, s, "file", clip, map[string]string{"response_format": "text"}); strings.TrimSpace(body) != servicetest.Words {
		t.Errorf("as text: %q", body)
	}
	if n := len(s.Requests()); n < 8 {
		t.Errorf("%d requests noted", n)
	}
}
