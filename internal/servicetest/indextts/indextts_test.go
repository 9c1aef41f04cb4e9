package indextts

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
	whole, patched := New(t), Patched(t)
	sound := servicetest.Speech("hello", rate)
	for name, test := range map[string]struct {
		s          *servicetest.Server
		path, body string
		status     int
		want       []byte
	}{
		"a file":      {whole, "/tts", `{"text":"hello","character":"jay_klee"}`, 200, append(servicetest.WAV(rate, uint32(len(sound))), sound...)},
		"samples":     {patched, "/tts", `{"text":"hello","character":"jay_klee"}`, 200, sound},
		"a reference": {patched, "/tts_url", `{"text":"hello","audio_paths":["a.wav"]}`, 200, sound},
		"OpenAI wire": {patched, "/audio/speech", `{"input":"hello","voice":"jay_klee","model":"m"}`, 200, sound},
		"no voice":    {whole, "/tts", `{"text":"hello"}`, 500, nil},
	} {
		resp, err := http.Post(test.s.URL()+test.path, "application/json", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != test.status || test.want != nil && !bytes.Equal(body, test.want) || test.status == 500 && !strings.Contains(string(body), "Traceback") {
			t.Errorf("%s: status %d, %d bytes", name, resp.StatusCode, len(body))
		}
	}
}
