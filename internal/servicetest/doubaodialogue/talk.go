package doubaodialogue

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// talk is one connection, with at most one session at a time.
type talk struct {
	tb        testing.TB
	line      *servicetest.Line
	connect   string
	connected bool
	used      map[string]bool // ids of sessions
	id        string          // of the session that is open, or ""
	before    string          // of the last one
	set       settings

	ear      servicetest.Ear
	heard    int // bytes of this utterance
	quiet    int // of silence since the last voice
	speaking bool
	told     string // the words of the user as they were told last
	own      string // our words that are being given by the client

	queue  []servicetest.Message
	due    time.Time
	silent time.Time // when sound came last
}

// object is one of JSON.
type object = map[string]any

// run answers until the connection is over.
func (t *talk) run() {
	t.silent = time.Now()
	for {
		wait := idle
		if len(t.queue) > 0 {
			if wait = time.Until(t.due); wait <= 0 {
				next := t.queue[0]
				t.queue = t.queue[1:]
				t.due, t.silent = time.Now().Add(pace), time.Now()
				if !t.line.Result(next, servicetest.Binary([]byte{0x11, audioAnswer<<4 | evented, 0, 0, 0})) {
					return
				}
				continue
			}
		}
		m, err := t.line.Next(wait)
		switch {
		case errors.Is(err, servicetest.ErrIdle) && len(t.queue) == 0 && t.id != "" && t.set.Dialog.Extra.Mode == "" && time.Since(t.silent) >= idle:
			t.over(52000042, "DialogAudioIdleTimeoutError")
			return
		case errors.Is(err, servicetest.ErrIdle):
		case err != nil || !t.take(m):
			return
		}
	}
}

// over ends the connection with an error.
func (t *talk) over(code uint32, words string) bool {
	if t.line.Say(wrong(code, words)) {
		t.line.End(websocket.CloseNormalClosure, "")
	}
	return false
}

// event is a frame of the server with JSON. It is packed in odd times.
func (t *talk) event(n uint32, o object) servicetest.Message {
	f := frame{kind: fullAnswer, form: inJSON, event: n, id: t.id, payload: servicetest.JSON(o).Data}
	if n < startSession {
		f.id = t.connect
	}
	if t.line.Fault() == servicetest.Odd {
		f.pack = zipped
	}
	return f.message()
}

func (t *talk) say(n uint32, o object) bool { return t.line.Say(t.event(n, o)) }

// send puts messages behind those that are to be sent.
func (t *talk) send(messages ...servicetest.Message) {
	if len(t.queue) == 0 {
		t.due = time.Now().Add(pace)
	}
	t.queue = append(t.queue, messages...)
}

// take answers a frame. It reports false when the connection is over.
func (t *talk) take(m servicetest.Message) bool {
	f, err := parse(m.Data)
	switch {
	case m.Type != websocket.BinaryMessage || err != nil || f.flags&evented == 0:
		return t.over(45000003, "decode ws request failed: torn frame")
	case f.kind != fullRequest && (f.kind != audioRequest || f.event != taskRequest) || (f.event == taskRequest) != (f.form == raw):
		return t.over(45000003, "unexpected message type or serialization")
	case f.event == startConnection && !t.connected:
		t.connected = true
		return t.say(connectionStarted, object{})
	case !t.connected:
		t.say(connectionFailed, object{"error": "StartConnection is the first event"})
		return t.over(45000000, "connection is not started")
	case f.event == finishConnection:
		if t.say(connectionFinished, object{}) {
			t.line.End(websocket.CloseNormalClosure, "")
		}
		return false
	case f.event == startSession:
		return t.begin(f)
	case t.id == "" && f.id == t.before && f.id != "":
		return true // what was on its way when the session ended
	case t.id == "" || f.id != t.id:
		return t.over(45000000, "session is not started: "+f.id)
	}
	if t.line.Fault() == servicetest.Odd && !t.say(799, object{"unknown": 1}) {
		return false
	}
	return t.inSession(f)
}

// begin starts a session.
func (t *talk) begin(f frame) bool {
	if t.id != "" || f.id == "" || t.used[f.id] {
		return t.over(45000000, "a session is open, or its id is missing or was used before")
	}
	t.used[f.id], t.id, t.set = true, f.id, settings{}
	why := ""
	if err := json.Unmarshal(f.payload, &t.set); err != nil {
		why = err.Error()
	} else {
		why = t.set.fault(t.line.Fault())
	}
	if why != "" {
		ok := t.say(sessionFailed, object{"error": why})
		t.id = ""
		return ok
	}
	dialog := t.set.Dialog.ID
	if dialog == "" {
		dialog = "dialog-0123456789"
	}
	t.silent = time.Now()
	if !t.say(sessionStarted, object{"dialog_id": dialog}) {
		return false
	}
	if t.line.Fault() == servicetest.Stale && t.before != "" {
		return t.line.Say(frame{kind: audioAnswer, event: ttsAudio, id: t.before, payload: make([]byte, 960)}.message())
	}
	return true
}

// inSession answers an event of a session.
func (t *talk) inSession(f frame) bool {
	if f.event == taskRequest {
		return t.hear(f.payload)
	}
	var q struct {
		Content string `json:"content"`
		Start   bool   `json:"start"`
		End     bool   `json:"end"`
		RAG     string `json:"external_rag"`
	}
	if json.Unmarshal(f.payload, &q) != nil {
		return t.say(commonError, object{"status_code": "45000001", "message": "the payload is no JSON"})
	}
	switch {
	case f.event == finishSession:
		t.queue = nil
		t.ear.Rest()
		t.heard, t.speaking, t.told, t.own = 0, false, "", ""
		ok := t.say(sessionFinished, object{})
		t.before, t.id = t.id, ""
		return ok
	case f.event == updateConfig:
		return t.say(configUpdated, object{})
	case f.event == sayHello && q.Content != "":
		t.speak("default", q.Content)
		return true
	case f.event == endASR && t.set.Dialog.Extra.Mode == "push_to_talk":
		return t.heardAll()
	case f.event == ttsText:
		if q.Start {
			t.queue, t.own = nil, ""
		}
		if t.own += q.Content; q.End {
			t.speak("chat_tts_text", t.own)
			t.own = ""
		}
		return true
	case f.event == textQuery && q.Content != "":
		t.queue = nil
		if !t.say(queryConfirmed, object{"question_id": "q1", "reply_id": "r1"}) {
			return false
		}
		t.chat(servicetest.Answer(q.Content))
		return true
	case f.event == ragText:
		var list []struct{ Title, Content string }
		if json.Unmarshal([]byte(q.RAG), &list) != nil || len(list) == 0 {
			return t.say(commonError, object{"status_code": "45000001", "message": "external_rag is no list"})
		}
		t.queue = nil
		t.speak("external_rag", servicetest.Answer(list[0].Content))
		return true
	case f.event >= createTurn && f.event <= deleteTurn:
		return t.say(turnCreated+f.event-createTurn, object{})
	case f.event == interrupt:
		t.queue = nil
		return true
	}
	return t.say(commonError, object{"status_code": "45000001", "message": "an event that is not due, or without what it needs"})
}

// hear takes sound.
func (t *talk) hear(sound []byte) bool {
	t.silent = time.Now()
	if len(sound)%2 != 0 {
		return t.over(45000151, "audio of half a sample")
	}
	t.heard += len(sound)
	words, _ := t.ear.Hear(sound)
	if t.line.Fault() == servicetest.Ends && t.heard > inRate {
		return t.over(52000042, "DialogAudioIdleTimeoutError")
	}
	loud := servicetest.Loud(sound)
	if t.quiet += len(sound); loud {
		t.quiet = 0
	}
	if loud && !t.speaking {
		t.speaking, t.queue = true, nil
		if !t.say(asrInfo, object{"question_id": "q1"}) {
			return false
		}
	}
	if words != "" && words != t.told {
		t.told = words
		if !t.say(asrResponse, object{"results": []object{{"text": words, "is_interim": true}}}) {
			return false
		}
	}
	wait := window
	if x := t.set.ASR.Extra; x.Custom && x.Window > 0 {
		wait = time.Duration(x.Window) * time.Millisecond
	}
	if !t.speaking || t.set.Dialog.Extra.Mode == "push_to_talk" || t.quiet < int(wait.Seconds()*inRate*2) {
		return true
	}
	return t.heardAll()
}

// heardAll answers what was said.
func (t *talk) heardAll() bool {
	words := t.ear.Rest()
	t.heard, t.quiet, t.speaking, t.told = 0, 0, false, ""
	if t.line.Fault() == servicetest.Late {
		t.line.Hold()
		return false
	}
	if words != "" && !t.say(asrResponse, object{"results": []object{{"text": words, "is_interim": false}}}) || !t.say(asrEnded, object{}) {
		return false
	}
	if words != "" {
		t.chat(servicetest.Answer(words))
	}
	return true
}

// chat gives an answer as text and as sound. The text runs ahead.
func (t *talk) chat(text string) {
	for _, p := range servicetest.Thirds(text) {
		t.send(t.event(chatResponse, object{"content": p, "question_id": "q1", "reply_id": "r1"}))
	}
	t.speak("default", text)
	t.send(t.event(chatEnded, object{"question_id": "q1"}), t.event(usage, object{"usage": object{"input_text_tokens": 5, "output_audio_tokens": 9}}))
}

// speak gives the sound of a text.
func (t *talk) speak(kind, text string) {
	t.send(t.event(sentenceStart, object{"tts_type": kind, "text": text}))
	for _, p := range servicetest.Pieces(t.sound(text), 4800) {
		f := frame{kind: audioAnswer, form: raw, event: ttsAudio, id: t.id, payload: p}
		if t.line.Fault() == servicetest.Odd {
			f.pack = zipped
		}
		t.send(f.message())
	}
	t.send(t.event(sentenceEnd, object{}), t.event(ttsEnded, object{"question_id": "q1", "reply_id": "r1"}))
}

// sound is that of a text as the session was told: Ogg Opus, or samples as floats or as integers.
func (t *talk) sound(text string) []byte {
	c := t.set.TTS.Config
	if c == nil || c.Format == "ogg_opus" {
		return servicetest.OggOpus(t.tb, text, outRate)
	}
	pcm := servicetest.Speech(text, outRate)
	if c.Format == "pcm_s16le" {
		return pcm
	}
	out := make([]byte, 0, 2*len(pcm))
	for _, v := range servicetest.Samples(pcm) {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)/32768))
	}
	return out
}
