package fishspeech

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
	sound := servicetest.Speech("hello", rate)
	packed := "\x83\xa4text\xa5hello\xa6format\xa3pcm\xaareferences\x91\x82\xa5audio\xc4\x02\x01\x02\xa4text\xd9\x01a"
	for name, test := range map[string]struct {
		kind, key, body string
		fault           servicetest.Fault
		status          int
		want            []byte
	}{
		"streamed":     {"application/json", servicetest.Key, `{"text":"hello","format":"wav","streaming":true}`, 0, 200, append(servicetest.WAV(rate, 0), sound...)},
		"packed":       {"application/msgpack", servicetest.Key, packed, 0, 200, sound},
		"torn":         {"application/msgpack", servicetest.Key, packed[:40], 0, 422, nil},
		"streamed mp3": {"application/json", servicetest.Key, `{"text":"hello","format":"mp3","streaming":true}`, 0, 400, nil},
		"mp3":          {"application/json", servicetest.Key, `{"text":"hello","format":"mp3"}`, 0, 200, servicetest.MP3("hello")},
		"no key":       {"application/json", "x", `{"text":"hello"}`, 0, 401, nil},
		"no money":     {"application/json", servicetest.Key, `{"text":"hello"}`, servicetest.NoMoney, 402, nil},
	} {
		s.Fail(test.fault)
		req, _ := http.NewRequest(http.MethodPost, s.URL()+"/v1/tts", strings.NewReader(test.body))
		req.Header.Set("Content-Type", test.kind)
		req.Header.Set("Authorization", "Bearer "+test.key)
		resp, err := http.DefaultClient.Do(req)
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
