package tencent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	pace  = 3               // seconds of sound that may come in a second
	slack = 2 * time.Second // of sound that may come before that counts
)

// listener is one session of recognition.
type listener struct {
	f       *fake
	l       *servicetest.Line
	id      string
	ear     servicetest.Ear
	index   int
	last    string
	begun   time.Time
	heard   int // bytes
	deaf    bool
	message int
}

// hearing is a session of recognition.
func (f *fake) hearing(w http.ResponseWriter, r *http.Request) {
	code, text := f.judge(r)
	l, ok := f.line(w, r)
	if !ok {
		return
	}
	defer l.Close()
	q := r.URL.Query()
	s := &listener{f: f, l: l, id: q.Get("voice_id"), begun: time.Now(), ear: servicetest.Ear{Rate: 16000}}
	if strings.HasPrefix(q.Get("engine_model_type"), "8k_") {
		s.ear.Rate = 8000
	}
	s.ear.Parts = l.Fault() == servicetest.Parts || l.Fault() == servicetest.Ends
	s.deaf = q.Get("voice_format") != "1" && q.Get("voice_format") != "12"
	if code != 0 {
		s.fail(code, text)
		return
	}
	f.mu.Lock()
	if l.Fault() == servicetest.Ends && f.ended%2 == 1 {
		f.ended++
		s.ear.Resume()
	}
	f.mu.Unlock()
	if _, err := l.Next(early); err == nil {
		s.fail(4001, "sound came before the session had begun")
		return
	}
	if !s.say(nil, false) {
		return
	}
	for s.next() {
	}
}

// answer is a message of the server.
func (s *listener) answer(code int, message string, result any, final bool) servicetest.Message {
	m := map[string]any{"code": code, "message": message, "voice_id": s.id}
	if result != nil {
		m["result"] = result
		m["message_id"] = s.id + "_11_" + string(rune('0'+s.message%10))
		s.message++
	}
	if final {
		m["final"] = 1
	}
	if s.l.Fault() == servicetest.Odd {
		m["x_new"], m["code"] = []any{nil, "é"}, fmt.Sprint(code) // numbers may come as texts
	}
	return servicetest.JSON(m)
}

// fail refuses or ends a session.
func (s *listener) fail(code int, message string) bool {
	s.l.Say(s.answer(code, message, nil, false))
	s.l.End(websocket.CloseNormalClosure, "")
	return false
}

// say sends a result, or what is none.
func (s *listener) say(result any, final bool) bool {
	m := s.answer(0, "success", result, final)
	if result == nil {
		return s.l.Say(m)
	}
	return s.l.Result(m, servicetest.Text(`{"code":0,"result":{`))
}

// slice is the result of a sentence: 0 begins it, 1 changes it, 2 ends it.
func (s *listener) slice(kind int, words string) bool {
	ok := s.say(map[string]any{
		"slice_type": kind, "index": s.index, "start_time": 0, "end_time": s.heard / 32,
		"voice_text_str": words, "word_size": 0, "word_list": []any{},
	}, false)
	if kind == 2 {
		s.index++
		s.last = ""
	}
	return ok
}

// next takes a message. It reports false when the session is over.
func (s *listener) next() bool {
	m, err := s.l.Next(idle)
	switch {
	case errors.Is(err, servicetest.ErrIdle):
		return s.fail(4008, "no sound came for 15 seconds")
	case err != nil:
		return false
	case m.Type == websocket.BinaryMessage:
		return s.hear(m.Data)
	}
	var end struct{ Type string }
	if json.Unmarshal(m.Data, &end) != nil || end.Type != "end" {
		return s.fail(4010, "unknown text message")
	}
	if s.l.Fault() == servicetest.Late {
		s.l.Hold()
		return false
	}
	words := s.ear.Rest()
	if words != "" && s.l.Fault() == servicetest.Odd { // and the last message may hold a result
		if s.l.Say(s.answer(0, "success", map[string]any{"slice_type": "2", "index": s.index, "voice_text_str": words}, true)) {
			s.l.End(websocket.CloseNormalClosure, "")
		}
		return false
	}
	if words != "" && !s.slice(2, words) {
		return false
	}
	return s.end()
}

// end is the end of a session, which the server closes.
func (s *listener) end() bool {
	if s.say(nil, true) {
		s.l.End(websocket.CloseNormalClosure, "")
	}
	return false
}

// hear takes sound.
func (s *listener) hear(pcm []byte) bool {
	s.heard += len(pcm)
	length := time.Duration(s.heard/2) * time.Second / time.Duration(s.ear.Rate)
	switch {
	case length > slack+pace*time.Since(s.begun):
		return s.fail(4000, "sound comes too fast")
	case s.deaf:
		return s.fail(4007, "sound cannot be decoded")
	}
	words, ended := s.ear.Hear(pcm)
	switch {
	case ended && s.l.Fault() == servicetest.Ends:
		s.f.mu.Lock()
		s.f.ended++
		s.f.mu.Unlock()
		return s.slice(2, words) && s.end()
	case ended:
		return s.slice(2, words)
	case words == "" || words == s.last:
		return true
	}
	kind := 1
	if s.last == "" {
		kind = 0
	}
	s.last = words
	return s.slice(kind, words)
}
