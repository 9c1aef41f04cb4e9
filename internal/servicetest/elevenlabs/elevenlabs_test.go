package elevenlabs

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// answer is one of the recogniser or of a voice.
type answer struct {
	Type    string `json:"message_type"`
	Text    string
	Audio   []byte
	IsFinal bool
	Context string `json:"contextId"`
	Error   string
}

func dial(t *testing.T, s *servicetest.Server, path string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+path, http.Header{"xi-api-key": {servicetest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	return c
}

func next(t *testing.T, c *websocket.Conn) (a answer) {
	t.Helper()
	if err := c.ReadJSON(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// heard sends sound and gives what was committed and the partials or the error.
func heard(t *testing.T, c *websocket.Conn, pcm []byte) (committed, others []string) {
	t.Helper()
	for _, p := range append(servicetest.Pieces(pcm, 6400), nil) {
		_ = c.WriteJSON(map[string]any{"message_type": "input_audio_chunk", "audio_base_64": base64.StdEncoding.EncodeToString(p), "commit": p == nil, "sample_rate": 16000})
	}
	for total := 0; ; {
		switch a := next(t, c); a.Type {
		case "committed_transcript":
			committed = append(committed, a.Text)
			if total += len(a.Text); total >= len(servicetest.Words)-1 || a.Text == "" {
				return committed, others
			}
		case "partial_transcript", "session_started", "unheard_of":
			others = append(others, a.Text)
		default:
			return committed, append(others, a.Type)
		}
	}
}

func TestItHears(t *testing.T) {
	t.Parallel()
	s := New(t)
	const path = "/v1/speech-to-text/realtime?model_id=scribe_v2_realtime&audio_format=pcm_16000&commit_strategy=manual"
	speech := servicetest.Speech(strings.Repeat("x", 25), 16000)
	c := dial(t, s, path)
	for range 2 {
		if committed, partials := heard(t, c, speech); strings.Join(committed, " ") != servicetest.Words || len(partials) < 4 {
			t.Errorf("heard %q after %q", committed, partials)
		}
	}
	if committed, _ := heard(t, c, make([]byte, 6400)); len(committed) != 1 || committed[0] != "" {
		t.Errorf("heard %q in silence", committed)
	}
	for f, want := range map[servicetest.Fault]string{
		servicetest.WrongKey: "auth_error", servicetest.NoMoney: "quota_exceeded", servicetest.RateLimited: "rate_limited", servicetest.Ends: "session_time_limit_exceeded",
	} {
		s.Fail(f)
		if _, others := heard(t, dial(t, s, path), speech); others[len(others)-1] != want {
			t.Errorf("%v: %q", f, others)
		}
	}
	s.Fail(servicetest.Parts)
	if committed, _ := heard(t, dial(t, s, path), speech); len(committed) != 2 || strings.Join(committed, " ") != servicetest.Words {
		t.Errorf("in parts: %q", committed)
	}
}

func TestItSpeaksByHTTP(t *testing.T) {
	t.Parallel()
	s := New(t)
	for f, want := range map[servicetest.Fault]int{
		servicetest.None: 200, servicetest.WrongKey: 401, servicetest.NoMoney: 401, servicetest.RateLimited: 429, servicetest.WrongVoice: 404,
	} {
		s.Fail(f)
		req, _ := http.NewRequest(http.MethodPost, s.URL()+"/v1/text-to-speech/me/stream?output_format=pcm_16000", strings.NewReader(`{"text":"hello"}`))
		req.Header.Set("xi-api-key", servicetest.Key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 200 && !bytes.Equal(got, servicetest.Speech("hello", 16000)) {
			t.Errorf("%v: status %d, %d bytes", f, resp.StatusCode, len(got))
		}
	}
}

// spoken reads sound until a stream or a context ends.
func spoken(t *testing.T, c *websocket.Conn, context string) (sound []byte) {
	t.Helper()
	for {
		a := next(t, c)
		if a.Context != context || a.Error != "" {
			t.Errorf("got %+v, want context %q", a, context)
		}
		if sound = append(sound, a.Audio...); a.IsFinal || a.Error != "" {
			return sound
		}
	}
}

func TestItSpeaksByWebSocket(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s, "/v1/text-to-speech/me/stream-input?output_format=pcm_16000")
	for _, text := range []string{" ", "hello ", ""} {
		_ = c.WriteJSON(map[string]any{"text": text})
	}
	if sound := spoken(t, c, ""); !bytes.Equal(sound, servicetest.Speech("hello", 16000)) {
		t.Errorf("%d bytes in a stream", len(sound))
	}
	c = dial(t, s, "/v1/text-to-speech/me/multi-stream-input?output_format=pcm_16000&model_id=eleven_flash_v2_5")
	for _, context := range []string{"a", "b"} {
		_ = c.WriteJSON(map[string]any{"text": " ", "context_id": context})
		_ = c.WriteJSON(map[string]any{"text": context + " ", "context_id": context, "flush": true})
		_ = c.WriteJSON(map[string]any{"context_id": context, "close_context": true})
		if sound := spoken(t, c, context); !bytes.Equal(sound, servicetest.Speech(context, 16000)) {
			t.Errorf("%d bytes in context %s", len(sound), context)
		}
	}
}
