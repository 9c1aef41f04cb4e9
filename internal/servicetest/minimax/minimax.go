// Package minimax is a fake of MiniMax's voices (T2A v2): over a WebSocket and as a stream
// of events.
package minimax

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	idle    = 1500 * time.Millisecond // 120 s with the vendor
	pause   = 2 * time.Millisecond    // between pieces of a voice
	piece   = 3200                    // bytes of a voice that are sent at once
	maxText = 10000                   // characters
)

// fake is the service.
type fake struct{ *servicetest.Server }

// New starts the fake.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("/ws/v1/t2a_v2", f.socket)
	mux.HandleFunc("POST /v1/t2a_v2", f.request)
	f.Server = servicetest.New(t, mux.ServeHTTP,
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.WrongVoice,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f.Server
}

// order asks for a task, or for a voice as a whole.
type order struct {
	Event string `json:"event"`
	Model string `json:"model"`
	Text  string `json:"text"`
	Voice struct {
		ID string `json:"voice_id"`
	} `json:"voice_setting"`
	Audio struct {
		Rate   int    `json:"sample_rate"`
		Format string `json:"format"`
	} `json:"audio_setting"`
	Stream  bool `json:"stream"`
	Options struct {
		NoAggregate bool `json:"exclude_aggregated_audio"`
	} `json:"stream_options"`
}

// base is the outcome that stands in every message.
func base(code int, message string) map[string]any {
	return map[string]any{"status_code": code, "status_msg": message}
}

// refusal returns the outcome with which a client is not let in, or 0.
func (f *fake) refusal(r *http.Request) (code int, message string) {
	switch fault := f.Fault(); {
	case fault == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
		return 1004, "login fail: Please carry the API secret key in the 'Authorization' field of the request header"
	case fault == servicetest.NoMoney:
		return 1008, "insufficient balance"
	case fault == servicetest.RateLimited:
		return 1002, "rate limit"
	}
	return 0, "success"
}

// check returns the outcome of an order that cannot be met, or 0.
func (f *fake) check(o *order) (code int, message string) {
	fault := f.Fault()
	if o.Audio.Rate == 0 {
		o.Audio.Rate = 32000
	}
	switch {
	case o.Model == "" || fault == servicetest.WrongModel:
		return 2013, "invalid params, unknown model"
	case o.Voice.ID == "":
		return 2013, "invalid params, voice_id is empty"
	case fault == servicetest.WrongVoice:
		return 2042, "you don't have access to this voice_id"
	case !slices.Contains([]int{8000, 16000, 22050, 24000, 32000, 44100}, o.Audio.Rate):
		return 2013, "invalid params, sample_rate"
	case !slices.Contains([]string{"", "mp3", "pcm", "wav"}, o.Audio.Format):
		return 2013, "invalid params, format"
	}
	return 0, "success"
}

// sound is the sound of a text as the order wants it.
func (o *order) sound(text string) []byte {
	pcm := servicetest.Speech(text, o.Audio.Rate)
	switch o.Audio.Format {
	case "pcm":
		return pcm
	case "wav":
		return append(servicetest.WAV(o.Audio.Rate, uint32(len(pcm))), pcm...)
	}
	return servicetest.MP3(text)
}

// cut cuts sound into what is sent at once.
func (f *fake) cut(sound []byte) [][]byte {
	if f.Fault() == servicetest.Odd {
		return servicetest.Pieces(sound, 1001)
	}
	return servicetest.Pieces(sound, piece)
}

// request is a voice by HTTP. What is refused is refused with status 200.
func (f *fake) request(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Body: body})
	var o order
	if err != nil || json.Unmarshal(body, &o) != nil {
		o = order{}
	}
	code, message := f.refusal(r)
	if code == 0 {
		code, message = f.check(&o)
	}
	if code == 0 && (o.Text == "" || len([]rune(o.Text)) > maxText || !o.Stream) {
		code, message = 2013, "invalid params, text is empty or too long, or not streamed"
	}
	if code != 0 {
		f.Refuse(w, http.StatusOK, fmt.Sprintf(`{"trace_id":"0421","base_resp":{"status_code":%d,"status_msg":%q}}`, code, message))
		return
	}
	var all strings.Builder
	first := 0
	event := func(audio []byte, status int) {
		m := map[string]any{"data": map[string]any{"audio": hex.EncodeToString(audio), "status": status, "ced": ""}, "trace_id": "0421", "base_resp": base(0, "")}
		if status == 2 {
			m["extra_info"] = map[string]any{"audio_length": 1, "usage_characters": len(o.Text)}
		}
		_, _ = fmt.Fprintf(&all, "data: %s\n\n", servicetest.JSON(m).Data)
	}
	sound := o.sound(o.Text)
	for _, p := range f.cut(sound) {
		event(p, 1)
		if first == 0 {
			first = all.Len()
		}
	}
	if o.Options.NoAggregate {
		sound = nil
	}
	event(sound, 2)
	f.Send(w, r, f.Fault(), servicetest.Reply{
		Type: "text/event-stream", Body: []byte(all.String()), Piece: first, Pause: pause,
		Broken: []byte("data: {\"data\":{\"audio\":\"zz\n\n"), Filler: []byte("data: {\"data\":{\"audio\":\"00000000\",\"status\":1}}\n\n"),
	})
}

// socket is a voice over a WebSocket: one task.
func (f *fake) socket(w http.ResponseWriter, r *http.Request) {
	code, message := f.refusal(r)
	l, ok := f.Line(w, r, http.Header{"Trace-Id": {"0421"}})
	if !ok {
		return
	}
	defer l.Close()
	s := &session{f: f, l: l}
	if code != 0 {
		s.fail(code, message)
		return
	}
	if !s.say("connected_success", 0, "success", nil) {
		return
	}
	for s.next() {
	}
}

// session is one socket.
type session struct {
	f     *fake
	l     *servicetest.Line
	order *order // of the task; nil until it has started
}

// message is a message of the server.
func (s *session) message(event string, code int, text string, more map[string]any) servicetest.Message {
	m := map[string]any{"event": event, "session_id": "5f2a", "trace_id": "0421", "base_resp": base(code, text)}
	maps.Copy(m, more)
	return servicetest.JSON(m)
}

// say sends a message that holds no sound.
func (s *session) say(event string, code int, text string, more map[string]any) bool {
	if s.l.Fault() == servicetest.Odd {
		s.l.Say(s.message("something_new", 0, "", map[string]any{"é": []any{nil}}))
	}
	return s.l.Say(s.message(event, code, text, more))
}

// fail ends the task and the session.
func (s *session) fail(code int, text string) bool {
	s.say("task_failed", code, text, nil)
	s.l.End(websocket.CloseNormalClosure, "")
	return false
}

// next takes a message. It reports false when the session is over.
func (s *session) next() bool {
	m, err := s.l.Next(idle)
	if errors.Is(err, servicetest.ErrIdle) {
		return s.fail(2201, "timeout, no event was received for too long")
	}
	var o order
	if err != nil {
		return false
	}
	if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &o) != nil {
		return s.fail(2202, "illegal event")
	}
	switch {
	case o.Event == "task_start" && s.order == nil:
		if code, text := s.f.check(&o); code != 0 {
			return s.fail(code, text)
		}
		s.order = &o
		if _, err := s.l.Next(5 * time.Millisecond); err == nil {
			return s.fail(2202, "illegal event: the task has not started")
		}
		return s.say("task_started", 0, "success", nil)
	case o.Event == "task_continue" && s.order != nil:
		return s.speak(o.Text)
	case o.Event == "task_finish" && s.order != nil:
		if s.say("task_finished", 0, "success", nil) {
			s.l.End(websocket.CloseNormalClosure, "")
		}
		return false
	}
	return s.fail(2202, "illegal event: "+o.Event)
}

// speak sends the sound of a text; the message that ends it holds none.
func (s *session) speak(text string) bool {
	switch n := len([]rune(text)); {
	case n == 0:
		return s.say("task_continued", 2203, "empty text is skipped", map[string]any{"is_final": true})
	case n >= maxText:
		return s.say("task_continued", 2204, "too long text is skipped", map[string]any{"is_final": true})
	}
	for _, p := range s.f.cut(s.order.sound(text)) {
		m := s.message("task_continued", 0, "success", map[string]any{"data": map[string]any{"audio": hex.EncodeToString(p)}, "is_final": false})
		if !s.l.Result(m, servicetest.Text(`{"data":{"audio":"zz`)) {
			return false
		}
		time.Sleep(pause)
	}
	return s.say("task_continued", 0, "success", map[string]any{
		"data": map[string]any{"audio": ""}, "is_final": true, "extra_info": map[string]any{"audio_length": 1, "usage_characters": len(text)},
	})
}
