package openairealtime

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const lamp = `[{"type":"function","name":"lamp","parameters":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}}]`

type client struct {
	*testing.T
	*websocket.Conn
}

func dial(t *testing.T, s *servicetest.Server, key string) (client, int) {
	t.Helper()
	c, resp, err := websocket.DefaultDialer.DialContext(t.Context(), s.WS()+"/v1/realtime?model=gpt-realtime-mini", http.Header{"Authorization": {"Bearer " + key}})
	if err != nil {
		return client{}, resp.StatusCode
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{t, c}, 101
}

func (c client) say(messages ...string) {
	c.Helper()
	for _, m := range messages {
		if err := c.WriteMessage(websocket.TextMessage, []byte(m)); err != nil {
			c.Fatal(err)
		}
	}
}

// until reads events up to one of a type, and returns the types, that event and the sound.
func (c client) until(kind string) (types []string, last map[string]any, sound []byte) {
	c.Helper()
	for {
		last = map[string]any{}
		if err := c.ReadJSON(&last); err != nil {
			c.Fatalf("after %v: %v", types, err)
		}
		name, _ := last["type"].(string)
		types = append(types, name)
		if strings.HasSuffix(name, "audio.delta") && last["item_id"] != "item_stale" {
			delta, _ := last["delta"].(string)
			b, err := base64.StdEncoding.DecodeString(delta)
			if err != nil {
				c.Fatal(err)
			}
			sound = append(sound, b...)
		}
		if name == kind {
			return types, last, sound
		}
	}
}

func speech() string {
	return `{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(servicetest.Speech("wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww", 24000)) + `"}`
}

const (
	commit  = `{"type":"input_audio_buffer.commit"}`
	respond = `{"type":"response.create"}`
	today   = `{"type":"session.update","session":{"type":"realtime","output_modalities":["audio"],"audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"gpt-4o-mini-transcribe"},"turn_detection":null},"output":{"format":{"type":"audio/pcm","rate":24000},"voice":"marin"}},"tools":TOOLS}}`
	beta    = `{"type":"session.update","session":{"modalities":["text","audio"],"voice":"alloy","input_audio_format":"pcm16","output_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},"turn_detection":null,"tools":TOOLS}}`
)

func TestTurn(t *testing.T) {
	for name, c := range map[string]struct {
		s           *servicetest.Server
		update, key string
	}{"today": {New(t), today, "response.output_audio.delta"}, "beta": {NewBeta(t), beta, "response.audio.delta"}} {
		t.Run(name, func(t *testing.T) {
			ws, _ := dial(t, c.s, servicetest.Key)
			ws.until("session.created")
			ws.say(strings.ReplaceAll(c.update, "TOOLS", "[]"), speech(), commit, respond, respond)
			ws.until("session.updated")
			types, done, sound := ws.until("response.done")
			want := servicetest.Speech(servicetest.Answer(servicetest.Words), 24000)
			if r, _ := done["response"].(map[string]any); r["status"] != "completed" || !slices.Equal(sound, want) || !slices.Contains(types, c.key) || !slices.Contains(types, "error") {
				t.Errorf("%d of %d bytes: %v %v", len(sound), len(want), types, done)
			}
			if !slices.Contains(types, "conversation.item.input_audio_transcription.completed") {
				t.Error("no words of the user")
			}
		})
	}
}

func TestToolAndTruncate(t *testing.T) {
	ws, _ := dial(t, New(t), servicetest.Key)
	ws.say(strings.ReplaceAll(today, "TOOLS", lamp), speech(), commit, respond)
	_, call, _ := ws.until("response.function_call_arguments.done")
	if call["name"] != "lamp" || call["arguments"] != `{"on":true}` {
		t.Errorf("%v", call)
	}
	ws.until("response.done")
	id, _ := json.Marshal(call["call_id"])
	result := `{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":` + string(id) + `,"output":"the lamp is on"}}`
	ws.say(result, result, respond)
	if _, e, _ := ws.until("error"); !strings.Contains(string(servicetest.JSON(e).Data), "invalid_tool_call_id") {
		t.Errorf("%v", e)
	}
	_, first, _ := ws.until("response.output_audio.delta")
	ws.say(`{"type":"response.cancel"}`)
	types, done, _ := ws.until("response.done")
	if r, _ := done["response"].(map[string]any); r["status"] != "cancelled" {
		t.Errorf("%v %v", types, done)
	}
	ws.until("response.output_audio.delta") // which is stale
	item, _ := json.Marshal(first["item_id"])
	ws.say(`{"type":"conversation.item.truncate","item_id":`+string(item)+`,"content_index":0,"audio_end_ms":60000}`,
		`{"type":"conversation.item.truncate","item_id":`+string(item)+`,"content_index":0,"audio_end_ms":20}`)
	if types, _, _ := ws.until("conversation.item.truncated"); !slices.Equal(types, []string{"error", "conversation.item.truncated"}) {
		t.Errorf("%v", types)
	}
}

func TestDetectorAndRefusals(t *testing.T) {
	s := New(t)
	if _, status := dial(t, s, "wrong"); status != 401 {
		t.Error(status)
	}
	ws, _ := dial(t, s, servicetest.Key)
	ws.say(speech(), strings.ReplaceAll(strings.Replace(today, `"turn_detection":null`, `"turn_detection":{"type":"server_vad","silence_duration_ms":200}`, 1), "TOOLS", "[]"),
		speech(), `{"type":"input_audio_buffer.append","audio":"`+base64.StdEncoding.EncodeToString(make([]byte, 9600))+`"}`)
	types, _, _ := ws.until("response.done")
	for _, want := range []string{"error", "session.updated", "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.committed"} {
		if !slices.Contains(types, want) {
			t.Errorf("no %s in %v", want, types)
		}
	}
	s.Fail(servicetest.NoMoney)
	ws, _ = dial(t, s, servicetest.Key)
	ws.say(strings.ReplaceAll(today, "TOOLS", "[]"), respond)
	if _, done, _ := ws.until("response.done"); !strings.Contains(string(servicetest.JSON(done).Data), "insufficient_quota") {
		t.Errorf("%v", done)
	}
	for _, wrong := range []string{`{"type":"session.update","session":{"type":"realtime","voice":"alloy"}}`, strings.ReplaceAll(today, "TOOLS", `[{"type":"function","function":{"name":"x"}}]`), commit, "{"} {
		ws.say(wrong)
		ws.until("error")
	}
}
