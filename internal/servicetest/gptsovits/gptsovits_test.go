package gptsovits

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

func TestItSpeaks(t *testing.T) {
	t.Parallel()
	s := New(t)
	const second = `{"text":"hello","text_lang":"zh","ref_audio_path":"/a.wav","prompt_lang":"zh","media_type":"wav","streaming_mode":1}`
	sound := servicetest.Speech("hello", rate)
	for name, test := range map[string]struct {
		path, body string
		fault      servicetest.Fault
		status     int
		want       []byte
	}{
		"second":    {"/tts", second, 0, 200, append(servicetest.WAV(rate, 0), sound...)},
		"raw":       {"/tts", strings.Replace(second, `"wav"`, `"raw"`, 1), 0, 200, sound},
		"first":     {"/", `{"text":"hello","text_language":"zh"}`, 0, 200, append(servicetest.WAV(rate, uint32(len(sound))), sound...)},
		"no prompt": {"/tts", `{"text":"hello","text_lang":"zh"}`, 0, 400, []byte("{\"message\":\"ref_audio_path is required\"}\n")},
		"no file":   {"/tts", second, servicetest.WrongVoice, 400, nil},
		"a proxy":   {"/tts", second, servicetest.Broken, 502, nil},
	} {
		s.Fail(test.fault)
		resp, err := http.Post(s.URL()+test.path, "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || test.want != nil && !bytes.Equal(body, test.want) {
			t.Errorf("%s: status %d, %d bytes", name, resp.StatusCode, len(body))
		}
	}
}
