package aliyun

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	maxText = 300                     // characters of one plain voice
	idle    = 1500 * time.Millisecond // between tasks; 10 s with the vendor
	deaf    = 3 * time.Second         // within one; 10 s with the vendor, too
	early   = 5 * time.Millisecond    // in which a client that does not wait for an answer shows itself
)

// hex32 is the form of all ids.
var hex32 = regexp.MustCompile(`^[0-9a-f]{32}$`)

// header is the head of every message.
type header struct {
	MessageID  string `json:"message_id"`
	TaskID     string `json:"task_id"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	AppKey     string `json:"appkey,omitempty"`
	Status     int    `json:"status,omitempty"`
	StatusText string `json:"status_text,omitempty"`
}

// command is a message of the client.
type command struct {
	Header  header `json:"header"`
	Payload struct {
		Format       string `json:"format"`
		SampleRate   int    `json:"sample_rate"`
		Intermediate bool   `json:"enable_intermediate_result"`
		Text         string `json:"text"`
	} `json:"payload"`
}

// state says what a session waits for.
type state int

const (
	waiting  state = iota // for a task to start
	hearing               // sound
	flowing               // texts
	finished              // nothing: the line is over
)

// session is one socket.
type session struct {
	f     *fake
	l     *servicetest.Line
	fault servicetest.Fault

	state    state
	task     header
	messages map[string]bool // ids that were used
	ear      servicetest.Ear
	index    int // of the sentence
	partials bool
	last     string
	format   string
	rate     int
	headed   bool // the header of a WAV was sent
}

// socket is a WebSocket of recognition or of a voice.
func (f *fake) socket(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("X-NLS-Token")
	if token == "" {
		token = r.URL.Query().Get("token")
	}
	if !f.known(token) {
		f.Refuse(w, http.StatusForbidden, `{"header":{"name":"TaskFailed","status":40000001,"status_text":"Gateway:ACCESS_DENIED:The token '...' is invalid!"}}`)
		return
	}
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	s := &session{f: f, l: l, fault: l.Fault(), messages: map[string]bool{}}
	for s.state != finished {
		limit := deaf
		if s.state == waiting {
			limit = idle
		}
		m, err := l.Next(limit)
		switch {
		case errors.Is(err, servicetest.ErrIdle):
			s.fail(40000004, "Gateway:IDLE_TIMEOUT:Websocket session is idle for too long time!")
		case err != nil:
			return
		case m.Type == websocket.TextMessage:
			s.text(m.Data)
		default:
			s.sound(m.Data)
		}
	}
}

// answer is a message of the current task.
func (s *session) answer(name string, payload any) servicetest.Message {
	h := s.task
	h.Name, h.Status, h.StatusText, h.AppKey = name, 20000000, "Gateway:SUCCESS:Success.", ""
	return servicetest.JSON(map[string]any{"header": h, "payload": payload, "x_new": nil})
}

// say sends a message of the current task that is no result.
func (s *session) say(name string, payload any) bool {
	if s.fault == servicetest.Odd {
		s.l.Say(s.answer("SomethingNew", map[string]any{"é": []any{1, nil}}))
	}
	return s.l.Say(s.answer(name, payload))
}

// result sends a result of the current task.
func (s *session) result(name string, payload any) {
	if !s.l.Result(s.answer(name, payload), servicetest.Text(`{"header":{"name":"`)) {
		s.state = finished
	}
}

// fail ends the task and the line.
func (s *session) fail(code int, text string) {
	h := s.task
	h.Name, h.Status, h.StatusText, h.AppKey = "TaskFailed", code, text, ""
	s.l.Say(servicetest.JSON(map[string]any{"header": h}))
	s.l.End(websocket.CloseNormalClosure, "")
	s.state = finished
}

// text takes a command.
func (s *session) text(data []byte) {
	var c command
	err := json.Unmarshal(data, &c)
	h := c.Header
	switch {
	case err != nil:
		s.fail(40000002, "Gateway:MESSAGE_INVALID:Can't process message")
		return
	case h.AppKey == "":
		s.fail(40020105, "Meta:APPKEY_NOT_EXIST:Appkey not exist!")
		return
	case h.AppKey != servicetest.ID:
		s.fail(40020106, "Meta:APPKEY_UID_MISMATCH:Appkey and user mismatch!")
		return
	case !hex32.MatchString(h.MessageID) || s.messages[h.MessageID] || !hex32.MatchString(h.TaskID):
		s.fail(40000002, "Gateway:MESSAGE_INVALID:Invalid message id or task id!")
		return
	}
	s.messages[h.MessageID] = true
	switch {
	case strings.HasPrefix(h.Name, "Start"):
		s.start(c)
	case s.state == waiting || h.TaskID != s.task.TaskID || h.Namespace != s.task.Namespace:
		s.fail(40010005, "Gateway:TASK_STATE_ERROR:Got "+h.Name+" directive while task is not started!")
	case s.state == hearing && (h.Name == "StopRecognition" || h.Name == "StopTranscription"):
		s.stopHearing()
	case s.state == flowing && h.Name == "RunSynthesis":
		s.run(c.Payload.Text)
	case s.state == flowing && h.Name == "StopSynthesis":
		s.complete()
	default:
		s.fail(40010003, "Gateway:DIRECTIVE_INVALID:Unknown directive!")
	}
}

// start begins a task.
func (s *session) start(c command) {
	if s.state != waiting || c.Header.TaskID == s.task.TaskID {
		s.fail(40010005, "Gateway:TASK_STATE_ERROR:Got start directive while task is starting!")
		return
	}
	voice := c.Header.Name == "StartSynthesis"
	if s.fault == servicetest.Stale && s.task.TaskID != "" {
		s.stale(voice)
	}
	s.task = c.Header
	if code, text := s.f.refusal(voice); code != 0 {
		s.fail(code, text)
		return
	}
	s.format, s.rate, s.headed, s.last, s.index = c.Payload.Format, c.Payload.SampleRate, false, "", 1
	if s.rate == 0 {
		s.rate = 16000
	}
	switch c.Header.Namespace + "." + c.Header.Name {
	case "SpeechRecognizer.StartRecognition":
		s.hear(c, "RecognitionStarted")
	case "SpeechTranscriber.StartTranscription":
		s.hear(c, "TranscriptionStarted")
	case "SpeechSynthesizer.StartSynthesis", "SpeechLongSynthesizer.StartSynthesis":
		if n := len([]rune(c.Payload.Text)); n == 0 || n > maxText && c.Header.Namespace == "SpeechSynthesizer" {
			s.fail(41020001, "TTS:TtsClientError:text is empty or too long")
			return
		}
		if s.speak(c.Payload.Text) {
			s.say("MetaInfo", map[string]any{"subtitles": []any{}})
			s.complete()
		}
	case "FlowingSpeechSynthesizer.StartSynthesis":
		if s.await("SynthesisStarted") {
			s.state = flowing
		}
	default:
		s.fail(40010001, "Gateway:NAMESPACE_NOT_FOUND:Namespace not found!")
	}
}

// await says that a task has started, unless the client does not wait for that.
func (s *session) await(name string) bool {
	switch _, err := s.l.Next(early); {
	case err == nil:
		s.fail(40010005, "Gateway:TASK_STATE_ERROR:Got a message before the task has started!")
		return false
	case errors.Is(err, servicetest.ErrLeft):
		s.state = finished
		return false
	}
	return s.say(name, map[string]any{"session_id": s.task.TaskID})
}

// stale sends what is left of the task before.
func (s *session) stale(voice bool) {
	if name := "SynthesisCompleted"; voice {
		s.l.Say(s.answer(name, map[string]any{}))
		return
	}
	s.l.Say(s.answer("RecognitionCompleted", map[string]any{"result": "stale words"}))
}
