package dashscope

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// client is a hand-written client of both protocols.
type client struct {
	*websocket.Conn
	t *testing.T
	n int
}

func dial(t *testing.T, s *servicetest.Server, path string) *client {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+path, http.Header{"Authorization": {"bearer " + servicetest.Key}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	return &client{Conn: c, t: t}
}

// answer holds the members of answers that the tests look at.
type answer struct {
	Type, Text, Stash, Transcript string
	Delta                         []byte
	Error                         struct{ Code, Message string }
	Header                        struct {
		Event   string
		Code    string `json:"error_code"`
		Message string `json:"error_message"`
	}
	Payload struct {
		Output struct {
			Sentence struct {
				Text string
				End  bool `json:"sentence_end"`
			}
		}
	}
}

// until reads to the event and returns it, what came before, and the sound.
func (c *client) until(event string) (last answer, before []answer, sound []byte) {
	c.t.Helper()
	for {
		kind, data, err := c.ReadMessage()
		if err != nil {
			c.t.Fatalf("instead of %s: %v, after %+v", event, err, before)
		}
		if kind == websocket.BinaryMessage {
			sound = append(sound, data...)
			continue
		}
		var a answer
		if err := json.Unmarshal(data, &a); err != nil {
			c.t.Fatalf("%q: %v", data, err)
		}
		sound = append(sound, a.Delta...)
		if a.Header.Event == event || a.Type == event {
			return a, before, sound
		}
		before = append(before, a)
	}
}

func (c *client) say(format string, args ...any) {
	_ = c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...))
}

// event says an event of the realtime protocol.
func (c *client) event(kind, more string) {
	c.n++
	c.say(`{"event_id":"e%d","type":%q%s}`, c.n, kind, more)
}

const (
	inference = "/api-ws/v1/inference"
	finish    = `{"header":{"action":"finish-task","task_id":%q,"streaming":"duplex"},"payload":{"input":{}}}`
	hear      = `{"header":{"action":"run-task","task_id":%q,"streaming":"duplex"},"payload":{"task_group":"audio","task":"asr","function":"recognition","model":"fun-asr-realtime","parameters":{"format":"pcm","sample_rate":16000},"input":{}}}`
	speak     = `{"header":{"action":"run-task","task_id":%q,"streaming":"duplex"},"payload":{"task_group":"audio","task":"tts","function":"SpeechSynthesizer","model":"cosyvoice-v2","parameters":{"text_type":"PlainText","voice":"v","format":"pcm","sample_rate":16000},"input":{}}}`
	text      = `{"header":{"action":"continue-task","task_id":%q,"streaming":"duplex"},"payload":{"input":{"text":%q}}}`
)

var tone = servicetest.Speech(strings.Repeat("a", 26), 16000)

func TestRecognitionTasks(t *testing.T) {
	t.Parallel()
	s := New(t)
	for _, fault := range []servicetest.Fault{servicetest.None, servicetest.Odd, servicetest.Parts} {
		s.Fail(fault)
		c := dial(t, s, inference)
		for _, id := range []string{"one" + fault.String(), "two" + fault.String()} {
			c.say(hear, id)
			c.until("task-started")
			for _, p := range servicetest.Pieces(tone, 3200) {
				_ = c.WriteMessage(websocket.BinaryMessage, p)
			}
			c.say(finish, id)
			_, results, _ := c.until("task-finished")
			var whole []string
			for _, r := range results {
				if r.Payload.Output.Sentence.End {
					whole = append(whole, r.Payload.Output.Sentence.Text)
				}
			}
			if strings.Join(whole, " ") != servicetest.Words || len(results) < 5 || (len(whole) == 2) != (fault == servicetest.Parts) {
				t.Errorf("%v: sentences %q of %d results", fault, whole, len(results))
			}
		}
	}
}

func TestTasksAreRefused(t *testing.T) {
	t.Parallel()
	s := New(t)
	for name, test := range map[string]struct {
		say  func(*client)
		code string
	}{
		"sound too early": {func(c *client) { c.say(hear, "a"); _ = c.WriteMessage(websocket.BinaryMessage, tone) }, "CLIENT_ERROR"},
		"no sound":        {func(c *client) { c.say(hear, "b"); c.until("task-started"); c.say(finish, "b") }, "NO_VALID_AUDIO_ERROR"},
		"no text":         {func(c *client) { c.say(speak, "c"); c.until("task-started"); c.say(text, "c", "") }, "InvalidParameter"},
		"no input":        {func(c *client) { c.say(strings.Replace(hear, `,"input":{}`, "", 1), "d") }, "InvalidParameter"},
		"null vocabulary": {func(c *client) { c.say(strings.Replace(hear, `"format"`, `"vocabulary_id":null,"format"`, 1), "f") }, "InvalidParameter"},
		"idle":            {func(c *client) { c.say(hear, "e"); c.until("task-started") }, "CLIENT_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, s, inference)
			test.say(c)
			if last, _, _ := c.until("task-failed"); last.Header.Code != test.code {
				t.Errorf("failed with %+v", last.Header)
			}
		})
	}
	if _, resp, err := websocket.DefaultDialer.Dial(s.WS()+inference, nil); err == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %v", err)
	}
}

func TestVoiceTasks(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s, inference)
	for _, id := range []string{"v1", "v2"} {
		c.say(speak, id)
		c.until("task-started")
		c.say(text, id, "hello")
		c.say(finish, id)
		if _, _, sound := c.until("task-finished"); len(sound) != len(servicetest.Speech("hello", 16000)) {
			t.Errorf("%d bytes of sound", len(sound))
		}
	}
	s.Fail(servicetest.WrongVoice)
	c = dial(t, s, inference)
	c.say(speak, "v3")
	if last, _, _ := c.until("task-failed"); !strings.Contains(last.Header.Message, "418") {
		t.Errorf("failed with %+v", last.Header)
	}
}

func TestRealtimeRecognition(t *testing.T) {
	t.Parallel()
	s := New(t)
	for _, vad := range []bool{true, false} {
		c := dial(t, s, "/api-ws/v1/realtime?model=qwen3-asr-flash-realtime")
		c.until("session.created")
		detection := "null"
		if vad {
			detection = `{"type":"server_vad","threshold":0.0,"silence_duration_ms":6000}`
		}
		c.event("session.update", `,"session":{"modalities":["text"],"input_audio_format":"pcm","sample_rate":16000,"turn_detection":`+detection+`}`)
		c.until("session.updated")
		for _, p := range servicetest.Pieces(tone, 3200) {
			c.event("input_audio_buffer.append", `,"audio":"`+base64.StdEncoding.EncodeToString(p)+`"`)
		}
		c.event("input_audio_buffer.commit", "")
		if vad {
			if last, before, _ := c.until("error"); len(before) < 4 || last.Error.Code != "invalid_value" || before[1].Text+before[1].Stash == "" {
				t.Errorf("a commit was not refused: %+v", before)
			}
			c.event("session.finish", "")
		}
		if last, _, _ := c.until("conversation.item.input_audio_transcription.completed"); last.Transcript != servicetest.Words {
			t.Errorf("heard %q", last.Transcript)
		}
		if vad {
			c.until("session.finished")
		}
	}
}

func TestRealtimeVoice(t *testing.T) {
	t.Parallel()
	s := New(t)
	c := dial(t, s, "/api-ws/v1/realtime?model=qwen3-tts-flash-realtime")
	c.until("session.created")
	c.event("session.update", `,"session":{"voice":"Cherry","mode":"server_commit","response_format":"pcm","sample_rate":24000}`)
	c.until("session.updated")
	c.event("input_text_buffer.append", `,"text":"hello"`)
	c.event("session.update", `,"session":{"voice":"Cherry"}`)
	c.until("error")
	c.event("session.finish", "")
	if _, _, sound := c.until("session.finished"); len(sound) != len(servicetest.Speech("hello", 24000)) {
		t.Errorf("%d bytes of sound", len(sound))
	}
}

func TestVoiceWithoutASocket(t *testing.T) {
	t.Parallel()
	s := New(t)
	for _, sse := range []string{"enable", ""} {
		req, _ := http.NewRequest(http.MethodPost, s.URL()+"/api/v1/services/aigc/multimodal-generation/generation",
			strings.NewReader(`{"model":"qwen3-tts-flash","input":{"text":"hello","voice":"Cherry"}}`))
		req.Header.Set("Authorization", "Bearer "+servicetest.Key)
		req.Header.Set("X-DashScope-SSE", sse)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || strings.Contains(string(body), "data:{") != (sse != "") || !strings.Contains(string(body), `"finish_reason":"stop"`) {
			t.Errorf("status %s, %.200q", resp.Status, body)
		}
	}
}
