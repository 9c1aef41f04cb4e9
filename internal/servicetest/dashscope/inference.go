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

// command holds the members of a client's messages in the inference protocol.
type command struct {
	Header struct {
		Action    string `json:"action"`
		TaskID    string `json:"task_id"`
		Streaming string `json:"streaming"`
	} `json:"header"`
	Payload struct {
		Group      string `json:"task_group"`
		Task       string `json:"task"`
		Function   string `json:"function"`
		Model      string `json:"model"`
		Parameters struct {
			Format       string          `json:"format"`
			SampleRate   int             `json:"sample_rate"`
			Heartbeat    bool            `json:"heartbeat"`
			VocabularyID json.RawMessage `json:"vocabulary_id"`
			Silence      *int            `json:"max_sentence_silence"`
			TextType     string          `json:"text_type"`
			Voice        string          `json:"voice"`
		} `json:"parameters"`
		Input *struct {
			Text  *string `json:"text"`
			Flush bool    `json:"flush"`
		} `json:"input"`
	} `json:"payload"`
}

// task is one task on a socket of the inference protocol.
type task struct {
	*servicetest.Line
	f     *fake
	begun command
	ear   servicetest.Ear
	sent  int
	id    int
}

// inference serves a socket: one task after the other.
func (f *fake) inference(w http.ResponseWriter, r *http.Request) {
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	for previous := ""; ; {
		m, err := l.Next(idle)
		if err != nil {
			if errors.Is(err, servicetest.ErrIdle) {
				l.End(websocket.CloseNormalClosure, "")
			}
			return
		}
		t := task{Line: l, f: f}
		if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &t.begun) != nil {
			t.fail("InvalidParameter", "task can not be null")
			return
		}
		if !t.start(previous) || !t.run() {
			return
		}
		previous = t.begun.Header.TaskID
	}
}

// event sends an event without a payload.
func (t *task) event(name string, attributes ...any) bool {
	return t.Say(servicetest.JSON(map[string]any{"header": t.header(name), "payload": map[string]any{}, "more": attributes}))
}

func (t *task) header(name string) map[string]any {
	return map[string]any{"event": name, "task_id": t.begun.Header.TaskID, "attributes": map[string]any{}}
}

// fail ends the task and the socket.
func (t *task) fail(code, message string) bool {
	h := t.header("task-failed")
	h["error_code"], h["error_message"] = code, message
	if t.Say(servicetest.JSON(map[string]any{"header": h, "payload": map[string]any{}})) {
		t.End(websocket.CloseNormalClosure, "")
	}
	return false
}

// start checks run-task and says that the task has begun.
func (t *task) start(previous string) bool {
	h, p := t.begun.Header, t.begun.Payload
	code, message := failure(t.Fault())
	switch {
	case h.Action != "run-task" || h.Streaming != "duplex" || p.Group != "audio" || p.Model == "" || p.Input == nil:
		return t.fail("InvalidParameter", "run-task is not complete")
	case !t.f.fresh(h.TaskID):
		return t.fail("InvalidParameter", "task_id is used already")
	case code != "":
		return t.fail(code, message)
	case p.Task == "asr" && !t.hears(), p.Task == "tts" && !t.speaks(), p.Task != "asr" && p.Task != "tts":
		return t.fail("InvalidParameter", "a required parameter is missing or invalid")
	case p.Task == "tts" && t.Fault() == servicetest.WrongVoice:
		return t.fail("InvalidParameter", "[tts:]Engine return error code: 418")
	}
	if _, err := t.Next(early); err == nil {
		return t.fail("CLIENT_ERROR", "data came before the task was started")
	}
	t.ear = servicetest.Ear{Rate: p.Parameters.SampleRate, Parts: t.Fault() == servicetest.Parts}
	if !t.event("task-started") {
		return false
	}
	if t.Fault() == servicetest.Stale && previous != "" {
		stale := *t
		stale.begun.Header.TaskID = previous
		return stale.sentence("stale", true)
	}
	return true
}

func (t *task) hears() bool {
	p := t.begun.Payload
	q := p.Parameters
	return p.Function == "recognition" && slices.Contains([]string{"pcm", "wav", "opus"}, q.Format) && string(q.VocabularyID) != "null" &&
		(q.SampleRate == 16000 || strings.Contains(p.Model, "paraformer-realtime-v2") && q.SampleRate >= 8000) &&
		(q.Silence == nil || *q.Silence >= 200 && *q.Silence <= 6000)
}

func (t *task) speaks() bool {
	p := t.begun.Payload
	q := p.Parameters
	return p.Function == "SpeechSynthesizer" && q.TextType == "PlainText" && q.Voice != "" &&
		slices.Contains([]string{"", "pcm", "wav", "mp3", "opus"}, q.Format) && slices.Contains([]int{0, 8000, 16000, 22050, 24000, 44100, 48000}, q.SampleRate)
}

// run serves the task until it is finished. It reports whether another may follow.
func (t *task) run() bool {
	for {
		m, err := t.Next(idle)
		switch {
		case errors.Is(err, servicetest.ErrIdle):
			return t.fail("CLIENT_ERROR", "request timeout after 23 seconds.")
		case err != nil:
			return false
		case m.Type == websocket.BinaryMessage:
			if t.begun.Payload.Task != "asr" {
				return t.fail("CLIENT_ERROR", "unexpected audio")
			}
			if !t.hear(m.Data) {
				return false
			}
			continue
		}
		var c command
		switch {
		case json.Unmarshal(m.Data, &c) != nil || c.Header.TaskID != t.begun.Header.TaskID || c.Header.Streaming != "duplex" || c.Payload.Input == nil:
			return t.fail("InvalidParameter", "the message is not complete")
		case c.Header.Action == "finish-task":
			return t.finish()
		case c.Header.Action != "continue-task" || t.begun.Payload.Task != "tts":
			return t.fail("InvalidParameter", "unknown action")
		case c.Payload.Input.Flush:
		case c.Payload.Input.Text == nil || *c.Payload.Input.Text == "":
			return t.fail("InvalidParameter", "text is null")
		case !t.speak(*c.Payload.Input.Text):
			return false
		}
	}
}

// finish gives what is left.
func (t *task) finish() bool {
	if t.begun.Payload.Task == "asr" {
		loud := t.ear.Heard()
		rest := t.ear.Rest()
		switch {
		case t.Fault() == servicetest.Late:
			t.Hold()
			return false
		case !loud:
			return t.fail("NO_VALID_AUDIO_ERROR", "No valid audio received")
		case rest != "" && !t.sentence(rest, true):
			return false
		}
	}
	return t.event("task-finished")
}

// hear takes sound.
func (t *task) hear(sound []byte) bool {
	text, ended := t.ear.Hear(sound)
	if t.Fault() == servicetest.Odd && t.sent == 1 {
		t.sent++
		if !t.output(map[string]any{"sentence": map[string]any{"begin_time": 0, "end_time": nil, "text": "", "heartbeat": true, "words": []any{}}}) {
			return false
		}
	}
	return text == "" || t.sentence(text, ended)
}

// sentence sends a sentence, so far or ended. Some that have ended say so without a time.
func (t *task) sentence(text string, ended bool) bool {
	s := map[string]any{
		"begin_time": 170, "end_time": nil, "text": text, "heartbeat": false, "sentence_end": ended, "sentence_id": t.id,
		"words": []any{map[string]any{"begin_time": 170, "end_time": 295, "text": text, "punctuation": ""}},
	}
	if ended {
		t.id++
		if t.Fault() != servicetest.Odd {
			s["end_time"] = 1200
		}
	}
	t.sent++
	return t.output(map[string]any{"sentence": s})
}

// output sends a result.
func (t *task) output(output map[string]any) bool {
	m := map[string]any{"header": t.header("result-generated"), "payload": map[string]any{"output": output, "usage": nil}}
	if t.Fault() == servicetest.Odd && !t.Say(servicetest.JSON(map[string]any{"header": t.header("task-hummed"), "payload": map[string]any{"x": 1}})) {
		return false
	}
	return t.Result(servicetest.JSON(m), servicetest.Text(`{"header":{"event":"result-gen`))
}

// speak sends the sound of a text: events of the newer models around frames of odd lengths.
func (t *task) speak(text string) bool {
	q := t.begun.Payload.Parameters
	rate := q.SampleRate
	if rate == 0 {
		rate = 22050
	}
	var sound []byte
	switch q.Format {
	case "", "mp3":
		sound = servicetest.MP3(text)
	case "opus":
		sound = servicetest.OggOpus(t.f.t, text, 24000)
	case "wav":
		sound = append(servicetest.WAV(rate, 0), servicetest.Speech(text, rate)...)
	default:
		sound = servicetest.Speech(text, rate)
	}
	typed := func(kind string) bool {
		m := map[string]any{"header": t.header("result-generated"), "payload": map[string]any{"output": map[string]any{"type": kind, "original_text": text}}}
		if t.Fault() == servicetest.Odd {
			m["payload"] = map[string]any{} // as the older models do
		}
		return t.Say(servicetest.JSON(m))
	}
	if !typed("sentence-begin") {
		return false
	}
	for _, p := range servicetest.Pieces(sound, 3333) {
		if !typed("sentence-synthesis") || !t.Result(servicetest.Binary(p), servicetest.Text(`{"header":{"event":"result-gen`)) {
			return false
		}
	}
	return typed("sentence-end")
}
