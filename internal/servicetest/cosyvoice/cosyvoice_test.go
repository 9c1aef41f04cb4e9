package cosyvoice

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"testing"

	"xiaozhi/internal/servicetest"
)

func TestItSpeaks(t *testing.T) {
	t.Parallel()
	s := New(t)
	check := func(name string, resp *http.Response, err error, status int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != status || status == 200 && !bytes.Equal(body, servicetest.Speech("hello", Rate)) {
			t.Errorf("%s: status %s, %d bytes", name, resp.Status, len(body))
		}
	}
	resp, err := http.PostForm(s.URL()+"/inference_sft", url.Values{"tts_text": {"hello"}, "spk_id": {"a"}})
	check("a voice", resp, err, 200)
	resp, err = http.PostForm(s.URL()+"/inference_sft", url.Values{"tts_text": {"hello"}})
	check("no voice", resp, err, 422)
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	_ = m.WriteField("tts_text", "hello")
	_ = m.WriteField("prompt_text", "a")
	part, _ := m.CreateFormFile("prompt_wav", "a.wav")
	_, _ = part.Write(servicetest.WAV(16000, 0))
	_ = m.Close()
	resp, err = http.Post(s.URL()+"/inference_zero_shot", m.FormDataContentType(), &form)
	check("a reference", resp, err, 200)
	s.Fail(servicetest.WrongVoice)
	resp, err = http.PostForm(s.URL()+"/inference_sft", url.Values{"tts_text": {"hello"}, "spk_id": {"a"}})
	check("no such voice", resp, err, 500)
}
