package qwenomni

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// talk sends messages and reads up to an event of a type.
func talk(t *testing.T, s *servicetest.Server, until string, messages ...string) (types []string, sound []byte, all string) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.DialContext(t.Context(), s.WS()+"/api-ws/v1/realtime?model=qwen3.5-omni-flash-realtime", http.Header{"Authorization": {"Bearer " + servicetest.Key}})
	if err != nil {
		return []string{err.Error()}, nil, ""
	}
	defer func() { _ = c.Close() }()
	for _, m := range messages {
		if err := c.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	for {
		var e struct{ Type, Delta string }
		_, raw, err := c.ReadMessage()
		if err != nil {
			t.Fatalf("after %v: %v", types, err)
		}
		all += string(raw)
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "response.audio.delta" {
			b, _ := base64.StdEncoding.DecodeString(e.Delta)
			sound = append(sound, b...)
		}
		if types = append(types, e.Type); e.Type == until {
			return types, sound, all
		}
	}
}

const (
	update = `{"type":"session.update","session":{"modalities":["text","audio"],"voice":"Cherry","input_audio_format":"pcm","output_audio_format":"pcm","input_audio_transcription":{"model":"qwen3-asr-flash-realtime"},"turn_detection":null,"tools":[TOOL]}}`
	nested = `{"type":"function","function":{"name":"lamp","parameters":{"type":"object","properties":{}}}}`
)

func TestTalk(t *testing.T) {
	s := New(t)
	sound := `{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(servicetest.Speech("wwwwwwwwww", 16000)) + `"}`
	turn := []string{strings.Replace(update, "TOOL", "", 1), sound, `{"type":"input_audio_buffer.commit"}`, `{"type":"response.create"}`}
	types, got, all := talk(t, s, "response.done", turn...)
	if want := servicetest.Speech(servicetest.Answer(servicetest.Words), 24000); !bytes.Equal(got, want) || !strings.Contains(all, `"transcript":"`+servicetest.Words) {
		t.Errorf("%d of %d bytes: %v", len(got), len(want), types)
	}
	turn[0] = strings.Replace(update, "TOOL", nested, 1)
	if _, _, all := talk(t, s, "response.done", turn...); !strings.Contains(all, `"name":"lamp"`) {
		t.Error(all)
	}
	for _, bad := range []string{
		strings.Replace(update, "TOOL", `{"type":"function","name":"lamp"}`, 1), strings.Replace(update, `"text",`, "", 1),
		`{"type":"session.update","session":{"turn_detection":{"type":"server_vad","silence_duration_ms":100}}}`, `{"type":"response.create"}`,
	} {
		talk(t, s, "error", bad)
	}
	talk(t, s, "error", strings.Replace(update, "TOOL", "", 1), `{"type":"conversation.item.truncate","item_id":"x","audio_end_ms":1}`)
	talk(t, s, "session.finished", `{"type":"session.finish"}`)
	s.Fail(servicetest.NoMoney)
	if _, _, all := talk(t, s, "error"); !strings.Contains(all, "Arrearage") {
		t.Error(all)
	}
	s.Fail(servicetest.WrongKey)
	if types, _, _ := talk(t, s, "error"); !slices.Equal(types, []string{websocket.ErrBadHandshake.Error()}) {
		t.Error(types)
	}
}
