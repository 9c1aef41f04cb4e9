package openaispeech

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	wireRate    = 24000
	shortest    = wireRate / 10 * 2 // bytes that can be committed: 100 ms
	longestPart = 15 << 20          // of one message, in base64
)

// dialect is one of the wires of transcription over a WebSocket.
type dialect struct {
	beta     bool     // the shape of the session before it became flat no more
	created  string   // the greeting
	update   string   // the client's first message
	updated  string   // the answer to it
	models   []string // that recognise
	detector bool     // one of voice that cannot be switched off
	deltas   bool     // text comes in pieces
	chosen   string   // the model that the address names
}

// live are models that give text while the user speaks, and want no detector of voice.
var live = []string{"gpt-realtime-whisper", "gpt-live-transcribe"}

func openaiRealtime(r *http.Request) dialect {
	d := dialect{created: "session.created", update: "session.update", updated: "session.updated", deltas: true,
		models: append([]string{"gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-transcribe", "whisper-1"}, live...), chosen: r.FormValue("model")}
	if r.Header.Get("OpenAI-Beta") == "realtime=v1" {
		d.beta, d.created, d.update, d.updated = true, "transcription_session.created", "transcription_session.update", "transcription_session.updated"
	}
	return d
}

func speachesRealtime(r *http.Request) dialect {
	return dialect{beta: true, created: "session.created", update: "session.update", updated: "session.updated", detector: true,
		models: []string{"Systran/faster-whisper-small"}, chosen: r.FormValue("model")}
}

// talk is one session.
type talk struct {
	dialect

	v       *vendor
	line    *servicetest.Line
	model   string
	ear     servicetest.Ear
	buffer  int    // bytes that are not committed
	items   int    // that were committed
	said    string // of the item that is being spoken, by a live model
	began   bool   // the detector heard a voice in this item
	updates int
}

func (v *vendor) realtime(w http.ResponseWriter, r *http.Request, d dialect) {
	if r.FormValue("intent") != "transcription" {
		v.refuse(w, servicetest.None, "intent: must be transcription")
		return
	}
	l, ok := v.Line(w, r, http.Header{"X-Request-Id": {"req_0123456789"}})
	if !ok {
		return
	}
	defer l.Close()
	auth := r.Header.Get("Authorization")
	if d.detector && (l.Fault() == servicetest.WrongKey || auth != "" && auth != "Bearer "+servicetest.Key) {
		l.End(websocket.ClosePolicyViolation, "Invalid API key")
		return
	}
	c := &talk{dialect: d, v: v, line: l, ear: servicetest.Ear{Rate: wireRate, Parts: d.detector && l.Fault() == servicetest.Parts}}
	if d.detector {
		if l.Fault() == servicetest.WrongModel || !slices.Contains(d.models, d.chosen) {
			c.fails("model_not_found", "Model '"+d.chosen+"' is not installed locally.")
			l.End(websocket.CloseInternalServerErr, "")
			return
		}
		c.model = d.chosen
	}
	c.says(d.created, "session", map[string]any{"id": "sess_1", "object": "realtime.session"})
	for {
		m, err := l.Next(0)
		if err != nil || !c.take(m) {
			return
		}
	}
}

// message is one of a client.
type message struct {
	Type    string          `json:"type"`
	Audio   *string         `json:"audio"`
	Session json.RawMessage `json:"session"`
}

// take answers a message. It reports false when the session is over.
func (c *talk) take(m servicetest.Message) bool {
	var got message
	if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &got) != nil {
		return c.fails("invalid_json", "Could not parse the message as JSON")
	}
	switch {
	case got.Type == c.update:
		return c.settle(got.Session)
	case got.Type == "input_audio_buffer.append" && (got.Audio == nil || len(*got.Audio) > longestPart):
		return c.fails("invalid_value", "audio: a base64 text of at most 15 MiB is required")
	case got.Type == "input_audio_buffer.append":
		sound, err := base64.StdEncoding.DecodeString(*got.Audio)
		if err != nil {
			return c.fails("invalid_base64", "Invalid 'audio'. Expected base64-encoded audio bytes.")
		}
		return c.hear(sound)
	case got.Type == "input_audio_buffer.clear":
		c.buffer, c.said = 0, ""
		c.ear.Rest()
		return c.says("input_audio_buffer.cleared", "", nil)
	case got.Type == "input_audio_buffer.commit":
		return c.commit()
	}
	return c.fails("invalid_value", "Invalid value: '"+got.Type+"'")
}

// session holds the settings of a client, in either shape.
type session struct {
	Type  string `json:"type"`
	Audio *struct {
		Input struct {
			Format struct {
				Type string `json:"type"`
				Rate int    `json:"rate"`
			} `json:"format"`
			Transcription transcription    `json:"transcription"`
			Detection     *json.RawMessage `json:"turn_detection"`
		} `json:"input"`
	} `json:"audio"`
	OldFormat        string           `json:"input_audio_format"`
	OldTranscription *transcription   `json:"input_audio_transcription"`
	OldDetection     *json.RawMessage `json:"turn_detection"`
}

type transcription struct {
	Model    string `json:"model"`
	Language string `json:"language"`
	Prompt   string `json:"prompt"`
}

// settle takes the settings of the session.
func (c *talk) settle(raw json.RawMessage) bool {
	var s session
	if err := json.Unmarshal(raw, &s); err != nil {
		return c.fails("invalid_value", "session: "+err.Error())
	}
	how := transcription{}
	detection := s.OldDetection
	switch {
	case c.beta && (s.Audio != nil || s.OldTranscription == nil && !c.detector):
		return c.fails("unknown_parameter", "Unknown parameter: 'session.audio'.")
	case c.beta && s.OldTranscription != nil:
		how = *s.OldTranscription
	case c.beta:
	case s.OldTranscription != nil || s.OldFormat != "" || s.OldDetection != nil:
		return c.fails("unknown_parameter", "Unknown parameter: 'session.input_audio_transcription'.")
	case s.Type != "transcription":
		return c.fails("missing_required_parameter", "Missing required parameter: 'session.type'.")
	case c.chosen != "":
		return c.fails("invalid_model", "Passing a transcription session update event to a realtime session is not allowed.")
	case s.Audio == nil || s.Audio.Input.Format.Type != "audio/pcm" || s.Audio.Input.Format.Rate != wireRate:
		return c.fails("invalid_value", "Invalid 'session.audio.input.format': only audio/pcm at 24000 Hz")
	default:
		how, detection = s.Audio.Input.Transcription, s.Audio.Input.Detection
	}
	if c.detector && how.Model == "" {
		how.Model = c.model
	}
	if c.line.Fault() == servicetest.WrongModel || !slices.Contains(c.models, how.Model) {
		return c.fails("invalid_model", "The model '"+how.Model+"' is not supported for transcription.")
	}
	if len(how.Language) > 3 {
		return c.fails("invalid_language_format", "Language parameter must be specified in ISO-639-1 format.")
	}
	quiet := detection == nil || string(*detection) == "null"
	if slices.Contains(live, how.Model) && (!quiet || how.Model == live[0] && how.Prompt != "") {
		return c.fails("invalid_value", "turn_detection and prompt are not supported with this model.")
	}
	c.model = how.Model
	c.updates++
	if c.line.Fault() == servicetest.Odd && !c.says("unknown.event", "more", []int{1}) {
		return false
	}
	return c.says(c.updated, "session", map[string]any{"id": "sess_1"})
}

// hear takes sound.
func (c *talk) hear(sound []byte) bool {
	if c.model == "" {
		return c.fails("session_not_configured", "The session has no transcription model.")
	}
	c.buffer += len(sound)
	text, ended := c.ear.Hear(sound)
	if c.detector && !c.began && c.ear.Heard() {
		c.began = true
		if !c.says("input_audio_buffer.speech_started", "item_id", c.item()) {
			return false
		}
	}
	switch {
	case ended:
		return c.says("input_audio_buffer.speech_stopped", "item_id", c.item()) && c.finish(text)
	case slices.Contains(live, c.model) && len(text) > len(c.said):
		delta := text[len(c.said):]
		c.said = text
		return c.result("delta", map[string]any{"content_index": 0, "delta": delta})
	}
	return true
}

// commit ends the item by the client's wish.
func (c *talk) commit() bool {
	if c.buffer < shortest {
		return c.fails("input_audio_buffer_commit_empty", fmt.Sprintf(
			"Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has %d.00ms of audio.", c.buffer*1000/2/wireRate))
	}
	if c.line.Fault() == servicetest.Stale && c.items > 0 {
		before := fmt.Sprintf("item_%d", c.items-1)
		if !c.line.Say(c.event("completed", before, map[string]any{"transcript": "stale"})) {
			return false
		}
	}
	return c.finish(c.ear.Rest())
}

// finish gives the text of the item.
func (c *talk) finish(text string) bool {
	if !c.says("input_audio_buffer.committed", "item_id", c.item()) || !c.says("conversation.item.created", "item", map[string]any{"id": c.item(), "type": "message"}) {
		return false
	}
	if c.line.Fault() == servicetest.Late {
		c.line.Hold()
		return false
	}
	if c.deltas {
		rest := strings.TrimPrefix(text, c.said)
		for _, p := range pieces(rest) {
			if !c.result("delta", map[string]any{"content_index": 0, "delta": p}) {
				return false
			}
		}
	}
	done := map[string]any{"content_index": 0, "transcript": text, "usage": map[string]any{"type": "duration", "seconds": 1}}
	if text == "" {
		if !c.line.Say(c.event("completed", c.item(), done)) {
			return false
		}
	} else if !c.result("completed", done) {
		return false
	}
	c.items++
	c.buffer, c.said, c.began = 0, "", false
	return true
}

// item is the name of the item that is being spoken.
func (c *talk) item() string { return fmt.Sprintf("item_%d", c.items) }

// event is a message about the words of an item.
func (c *talk) event(what, item string, fields map[string]any) servicetest.Message {
	m := map[string]any{"type": "conversation.item.input_audio_transcription." + what, "event_id": "event_1", "item_id": item}
	maps.Copy(m, fields)
	return servicetest.JSON(m)
}

// result sends words of the item.
func (c *talk) result(what string, fields map[string]any) bool {
	return c.line.Result(c.event(what, c.item(), fields), servicetest.Text(`{"type":"conversation.item.input_audio_tr`))
}

// says sends an event that holds no words.
func (c *talk) says(kind, field string, value any) bool {
	m := map[string]any{"type": kind, "event_id": "event_1"}
	if field != "" {
		m[field] = value
	}
	return c.line.Say(servicetest.JSON(m))
}

// fails sends an error, after which the session goes on.
func (c *talk) fails(code, words string) bool {
	return c.says("error", "error", map[string]any{"type": "invalid_request_error", "code": code, "message": words, "param": nil, "event_id": nil})
}
