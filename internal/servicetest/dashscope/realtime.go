package dashscope

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// event holds the members of a client's events in the realtime protocol.
type event struct {
	ID      string `json:"event_id"`
	Type    string `json:"type"`
	Audio   []byte `json:"audio"`
	Text    string `json:"text"`
	Session *struct {
		Format        string          `json:"input_audio_format"`
		SampleRate    int             `json:"sample_rate"`
		Transcription json.RawMessage `json:"input_audio_transcription"`
		Detection     json.RawMessage `json:"turn_detection"`
		Voice         string          `json:"voice"`
		Mode          string          `json:"mode"`
		Response      string          `json:"response_format"`
	} `json:"session"`
}

// realtime is one session.
type realtime struct {
	*servicetest.Line
	f       *fake
	ids     map[string]bool
	session event // as it was updated
	spoken  bool  // sound or text has come
	vad     bool
	ear     servicetest.Ear
	items   int
	told    string
	text    string // that waits to be spoken
}

// open takes the socket of a session and greets.
func (f *fake) open(w http.ResponseWriter, r *http.Request) (*realtime, bool) {
	l, ok := f.Line(w, r, nil)
	if !ok {
		return nil, false
	}
	s := &realtime{Line: l, f: f, ids: map[string]bool{}, vad: true, ear: servicetest.Ear{Rate: 16000, Parts: l.Fault() == servicetest.Parts}}
	if code, message := failure(l.Fault()); code != "" {
		s.fail("server_error", code, message)
		l.End(websocket.CloseInternalServerErr, message)
		l.Close()
		return nil, false
	}
	return s, s.say("session.created", map[string]any{"session": map[string]any{"id": "sess_1", "object": "realtime.session", "model": r.URL.Query().Get("model")}})
}

// say sends an event that is no result.
func (s *realtime) say(kind string, fields map[string]any) bool {
	return s.Say(s.message(kind, fields))
}

// result sends an event that is one.
func (s *realtime) result(kind string, fields map[string]any) bool {
	return s.Result(s.message(kind, fields), servicetest.Text(`{"type":"`+kind[:4]))
}

func (s *realtime) message(kind string, fields map[string]any) servicetest.Message {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["type"], fields["event_id"] = kind, "event_x"
	return servicetest.JSON(fields)
}

// fail says that an event was wrong; the session goes on.
func (s *realtime) fail(kind, code, message string) bool {
	return s.say("error", map[string]any{"error": map[string]any{"type": kind, "code": code, "message": message, "param": nil, "event_id": ""}})
}

// next returns the next event of the client that has an id of its own.
func (s *realtime) next() (event, bool) {
	for {
		m, err := s.Next(idle)
		if errors.Is(err, servicetest.ErrIdle) {
			s.End(websocket.CloseInternalServerErr, "")
		}
		if err != nil {
			return event{}, false
		}
		var e event
		switch {
		case m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &e) != nil:
			s.fail("invalid_request_error", "invalid_value", "Invalid JSON.")
		case e.ID == "" || s.ids[e.ID]:
			s.fail("invalid_request_error", "invalid_value", "event_id is missing or was used before.")
		default:
			s.ids[e.ID] = true
			if s.Fault() == servicetest.Odd {
				s.say("session.hummed", map[string]any{"x": []int{1}})
			}
			return e, true
		}
	}
}

// recognition serves a session of qwen3-asr.
func (f *fake) recognition(w http.ResponseWriter, r *http.Request) {
	s, ok := f.open(w, r)
	if !ok {
		return
	}
	defer s.Close()
	for {
		e, ok := s.next()
		if !ok {
			return
		}
		switch e.Type {
		case "session.update":
			ok = s.update(e)
		case "input_audio_buffer.append":
			ok = s.append(e.Audio)
		case "input_audio_buffer.commit":
			ok = s.commit()
		case "session.finish":
			if s.finish() {
				s.Hold() // it is the client that closes
			}
			return
		default:
			ok = s.fail("invalid_request_error", "invalid_value", "Invalid value: '"+e.Type+"'.")
		}
		if !ok {
			return
		}
	}
}

// update sets what the session hears.
func (s *realtime) update(e event) bool {
	if e.Session == nil || !slices.Contains([]string{"", "pcm", "opus"}, e.Session.Format) || !slices.Contains([]int{0, 8000, 16000}, e.Session.SampleRate) {
		return s.fail("invalid_request_error", "invalid_value", "Invalid session.")
	}
	s.session = e
	if e.Session.SampleRate != 0 {
		s.ear.Rate = e.Session.SampleRate
	}
	var detection struct {
		Type    string `json:"type"`
		Silence *int   `json:"silence_duration_ms"`
	}
	s.vad = string(e.Session.Detection) != "null"
	if s.vad && len(e.Session.Detection) > 0 {
		if json.Unmarshal(e.Session.Detection, &detection) != nil || detection.Type != "server_vad" || detection.Silence != nil && (*detection.Silence < 200 || *detection.Silence > 6000) {
			return s.fail("invalid_request_error", "invalid_value", "Invalid turn_detection.")
		}
	}
	return s.say("session.updated", map[string]any{"session": map[string]any{"id": "sess_1"}})
}

// append takes sound; only a session that finds the pauses by itself shows what it hears.
func (s *realtime) append(sound []byte) bool {
	text, ended := s.ear.Hear(sound)
	if !s.vad || text == "" || text == s.told && !ended {
		return true
	}
	if s.told == "" && !s.say("input_audio_buffer.speech_started", map[string]any{"audio_start_ms": 0, "item_id": s.item()}) {
		return false
	}
	if ended {
		return s.completed(text, true)
	}
	settled := strings.TrimSpace(s.told)
	s.told = text
	if !strings.HasPrefix(text, settled) {
		settled = ""
	}
	return s.result("conversation.item.input_audio_transcription.text", map[string]any{
		"item_id": s.item(), "content_index": 0, "language": "zh", "emotion": "neutral", "text": settled, "stash": text[len(settled):],
	})
}

func (s *realtime) item() string { return "item_" + string(rune('a'+s.items)) }

// completed gives a finished text.
func (s *realtime) completed(text string, stopped bool) bool {
	s.told = ""
	item := s.item()
	s.items++
	if stopped && !s.say("input_audio_buffer.speech_stopped", map[string]any{"audio_end_ms": 1, "item_id": item}) {
		return false
	}
	return s.say("input_audio_buffer.committed", map[string]any{"item_id": item, "previous_item_id": ""}) &&
		s.say("conversation.item.created", map[string]any{"item": map[string]any{"id": item, "type": "message", "role": "user"}}) &&
		s.result("conversation.item.input_audio_transcription.completed", map[string]any{
			"item_id": item, "content_index": 0, "language": "zh", "emotion": "neutral", "transcript": text,
		})
}

// commit ends an utterance, unless the session does that by itself.
func (s *realtime) commit() bool {
	if s.vad {
		return s.fail("invalid_request_error", "invalid_value", "Commit is not allowed when turn detection is on.")
	}
	if s.Fault() == servicetest.Late {
		s.Hold()
		return false
	}
	return s.completed(s.ear.Rest(), false)
}

// finish gives what is left and ends the session.
func (s *realtime) finish() bool {
	if s.Fault() == servicetest.Late {
		return true
	}
	if rest := s.ear.Rest(); rest != "" && s.vad && !s.completed(rest, true) {
		return false
	}
	return s.say("session.finished", nil)
}

// voice serves a session of qwen-tts.
func (f *fake) voice(w http.ResponseWriter, r *http.Request) {
	s, ok := f.open(w, r)
	if !ok {
		return
	}
	defer s.Close()
	for {
		e, ok := s.next()
		if !ok {
			return
		}
		switch e.Type {
		case "session.update":
			ok = s.setVoice(e)
		case "input_text_buffer.append":
			s.spoken = true
			s.text += e.Text
		case "input_text_buffer.clear":
			s.text = ""
			ok = s.say("input_text_buffer.cleared", nil)
		case "input_text_buffer.commit":
			ok = s.say("input_text_buffer.committed", map[string]any{"item_id": s.item()}) && s.respond()
		case "response.cancel":
		case "session.finish":
			if s.respond() && s.say("session.finished", nil) {
				s.End(websocket.CloseNormalClosure, "")
			}
			return
		default:
			ok = s.fail("invalid_request_error", "invalid_value", "Invalid value: '"+e.Type+"'.")
		}
		if !ok {
			return
		}
	}
}

// setVoice sets how the session speaks, which it must before any text.
func (s *realtime) setVoice(e event) bool {
	switch {
	case s.spoken:
		return s.fail("invalid_request_error", "invalid_value", "Session update error: session already started or finished or failed.")
	case e.Session == nil || e.Session.Voice == "" || !slices.Contains([]string{"", "server_commit", "commit"}, e.Session.Mode) ||
		!slices.Contains([]string{"", "pcm", "wav", "mp3", "opus"}, e.Session.Response):
		return s.fail("invalid_request_error", "invalid_value", "Invalid session.")
	case s.Fault() == servicetest.WrongVoice:
		s.fail("invalid_request_error", "InvalidParameter", "The voice '"+e.Session.Voice+"' is not supported.")
		s.End(websocket.ClosePolicyViolation, "")
		return false
	}
	s.session = e
	return s.say("session.updated", map[string]any{"session": map[string]any{"id": "sess_1"}})
}

// sound is the sound of a text as the session was told.
func (s *realtime) sound(text string) []byte {
	rate, format := 24000, "pcm"
	if q := s.session.Session; q != nil {
		format = q.Response
		if q.SampleRate != 0 {
			rate = q.SampleRate
		}
	}
	switch format {
	case "mp3":
		return servicetest.MP3(text)
	case "opus":
		return servicetest.OggOpus(s.f.t, text, 24000)
	case "wav":
		return append(servicetest.WAV(rate, 0), servicetest.Speech(text, rate)...)
	default:
		return servicetest.Speech(text, rate)
	}
}

// respond speaks the text that waits.
func (s *realtime) respond() bool {
	text := s.text
	s.text = ""
	if text == "" {
		return true
	}
	for _, kind := range []string{"response.created", "response.output_item.added", "response.content_part.added"} {
		if !s.say(kind, map[string]any{"response_id": "resp_1"}) {
			return false
		}
	}
	for _, p := range servicetest.Pieces(s.sound(text), 4801) {
		if !s.result("response.audio.delta", map[string]any{"response_id": "resp_1", "delta": p}) {
			return false
		}
	}
	for _, kind := range []string{"response.audio.done", "response.content_part.done", "response.output_item.done", "response.done"} {
		if !s.say(kind, map[string]any{"response_id": "resp_1"}) {
			return false
		}
	}
	return true
}
