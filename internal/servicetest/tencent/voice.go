package tencent

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	piece   = 3200                 // bytes of a voice that are sent at once
	pause   = 2 * time.Millisecond // between them
	maxText = 150                  // characters of a voice by a single request
	ends    = "。；？！;?!\n"          // what ends a sentence for the voice
)

// speaker is one session of a voice.
type speaker struct {
	l     *servicetest.Line
	id    string
	codec string
	rate  int
	text  string // that has not been spoken
}

// begin takes a session of a voice, or refuses it.
func (f *fake) begin(w http.ResponseWriter, r *http.Request, action string) (*speaker, bool) {
	code, text := f.judgeVoice(r, action)
	l, ok := f.line(w, r)
	if !ok {
		return nil, false
	}
	q := r.URL.Query()
	s := &speaker{l: l, id: q.Get("SessionId"), codec: q.Get("Codec"), rate: 16000}
	if n, err := strconv.Atoi(q.Get("SampleRate")); err == nil && n > 0 {
		s.rate = n
	}
	if code != 0 {
		s.fail(code, text)
		l.Close()
		return nil, false
	}
	if !s.say("success", map[string]any{}) {
		l.Close()
		return nil, false
	}
	return s, true
}

// flowing is a voice whose text comes in pieces.
func (f *fake) flowing(w http.ResponseWriter, r *http.Request) {
	s, ok := f.begin(w, r, "TextToStreamAudioWSv2")
	if !ok {
		return
	}
	defer s.l.Close()
	if _, err := s.l.Next(early); err == nil {
		s.fail(10001, "text came before the session was ready")
		return
	}
	if !s.say("success", map[string]any{"ready": 1}) {
		return
	}
	for {
		m, err := s.l.Next(idle)
		if errors.Is(err, servicetest.ErrIdle) {
			if !s.say("success", map[string]any{"heartbeat": 1}) {
				return
			}
			continue
		}
		if err != nil || !s.command(m) {
			return
		}
	}
}

// whole is a voice whose text stands in the query.
func (f *fake) whole(w http.ResponseWriter, r *http.Request) {
	s, ok := f.begin(w, r, "TextToStreamAudioWS")
	if !ok {
		return
	}
	defer s.l.Close()
	if s.speak(r.URL.Query().Get("Text")) {
		s.say("success", map[string]any{"final": 1})
		s.l.Hold()
	}
}

// say sends a message that is no sound.
func (s *speaker) say(message string, more map[string]any) bool {
	m := map[string]any{
		"code": 0, "message": message, "session_id": s.id, "request_id": "r", "message_id": "m",
		"final": 0, "ready": 0, "heartbeat": 0, "reset": 0, "result": map[string]any{"subtitles": nil},
	}
	maps.Copy(m, more)
	return s.l.Say(servicetest.JSON(m))
}

// fail ends the session with a code.
func (s *speaker) fail(code int, message string) bool {
	s.say(message, map[string]any{"code": code})
	s.l.End(websocket.CloseNormalClosure, "")
	return false
}

// command takes a message. It reports false when the session is over.
func (s *speaker) command(m servicetest.Message) bool {
	var c struct {
		SessionID string `json:"session_id"`
		MessageID string `json:"message_id"`
		Action    string `json:"action"`
		Data      string `json:"data"`
	}
	if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &c) != nil || c.SessionID != s.id || c.MessageID == "" {
		return s.fail(10001, "parameter is wrong")
	}
	switch c.Action {
	case "ACTION_SYNTHESIS":
		s.text += c.Data
		cut := strings.LastIndexAny(s.text, ends)
		if cut < 0 {
			return true
		}
		_, n := utf8.DecodeRuneInString(s.text[cut:])
		cut += n
		text := s.text[:cut]
		s.text = s.text[cut:]
		return s.speak(text)
	case "ACTION_RESET":
		s.text = ""
		return s.say("success", map[string]any{"reset": 1})
	case "ACTION_COMPLETE":
		if !s.speak(s.text) || !s.say("success", map[string]any{"final": 1}) {
			return false
		}
		s.l.Hold() // the client closes
		return false
	}
	return s.fail(10001, "parameter is wrong: action")
}

// speak sends the sound of a text.
func (s *speaker) speak(text string) bool {
	sound := servicetest.Speech(text, s.rate)
	if s.codec == "mp3" {
		sound = servicetest.MP3(text)
	}
	n := piece
	if s.l.Fault() == servicetest.Odd {
		n = 1001
		s.say("success", map[string]any{"x_new": []any{nil, "é"}})
	}
	for i, p := range servicetest.Pieces(sound, n) {
		if i > 0 {
			time.Sleep(pause)
		}
		if !s.l.Result(servicetest.Binary(p), servicetest.Text(`{"code":0,"result":{`)) {
			return false
		}
	}
	return text == "" || s.say("success", map[string]any{"result": map[string]any{"subtitles": []any{map[string]any{"Text": text, "BeginTime": 0, "EndTime": 100, "BeginIndex": 0, "EndIndex": 1}}}})
}
