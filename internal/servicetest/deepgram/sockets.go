package deepgram

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// flushes is how many sentences a voice may be asked for in a minute.
const flushes = 20

// command is a message of text.
type command struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// read returns the next message, or ends a socket that is idle or talks nonsense. A
// message of sound has no type.
func read(l *servicetest.Line) (c command, sound []byte, ok bool) {
	m, err := l.Next(idle)
	switch {
	case errors.Is(err, servicetest.ErrIdle):
		l.End(websocket.CloseInternalServerErr, "Deepgram did not receive audio data or a text message within the timeout window. NET-0001")
		return c, nil, false
	case err != nil:
		return c, nil, false
	case m.Type == websocket.BinaryMessage:
		return c, m.Data, true
	}
	if json.Unmarshal(m.Data, &c) != nil || c.Type == "" {
		l.End(websocket.ClosePolicyViolation, "DATA-0000")
		return c, nil, false
	}
	return c, nil, true
}

// nova is a session of /v1/listen.
type nova struct {
	*servicetest.Line
	ear     servicetest.Ear
	interim bool
	told    string
	at      float64 // seconds of sound so far
}

func (f *fake) nova(w http.ResponseWriter, r *http.Request) {
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	q := r.URL.Query()
	n := &nova{Line: l, interim: q.Get("interim_results") == "true", ear: servicetest.Ear{Rate: int(number(q.Get("sample_rate"))), Parts: l.Fault() == servicetest.Parts}}
	for {
		c, sound, ok := read(l)
		switch {
		case !ok:
			return
		case c.Type == "CloseStream", c.Type == "" && len(sound) == 0: // an empty message ends the stream
			n.finish()
			return
		case c.Type == "Finalize":
			ok = n.finalize()
		case c.Type == "KeepAlive":
		case c.Type == "":
			ok = n.hear(sound)
		default:
			l.End(websocket.ClosePolicyViolation, "DATA-0000")
			return
		}
		if !ok {
			return
		}
	}
}

// hear takes sound. A sentence ends as a segment that is final before the pause is noticed.
func (n *nova) hear(sound []byte) bool {
	n.at += float64(len(sound)) / 2 / float64(n.ear.Rate)
	text, ended := n.ear.Hear(sound)
	switch {
	case ended:
		n.told = ""
		return n.result(text, true, false, false) && n.result("", true, true, false)
	case text == "" || text == n.told || !n.interim:
		return true
	}
	n.told = text
	return n.result(text, false, false, false)
}

// result sends a segment.
func (n *nova) result(text string, final, pause, finalized bool) bool {
	m := map[string]any{
		"type": "Results", "channel_index": []int{0, 1}, "duration": n.at, "start": 0.0, "is_final": final, "speech_final": pause, "from_finalize": finalized,
		"channel": map[string]any{"alternatives": []any{map[string]any{
			"transcript": text, "confidence": 0.99, "words": []any{map[string]any{"word": text, "start": 0.1, "end": 0.5, "confidence": 0.9, "punctuated_word": text}},
		}}},
		"metadata": map[string]any{"request_id": request, "model_info": map[string]any{"name": "nova"}},
	}
	if n.Fault() == servicetest.Odd && !n.Say(servicetest.JSON(map[string]any{"type": "SpeechStarted", "channel": []int{0, 1}, "timestamp": 0.1}), servicetest.JSON(map[string]any{"type": "Hummed"})) {
		return false
	}
	return n.Result(servicetest.JSON(m), servicetest.Text(`{"type":"Resul`))
}

// finalize gives what is left, unless that is next to nothing.
func (n *nova) finalize() bool {
	n.told = ""
	rest := n.ear.Rest()
	if rest == "" || n.Fault() == servicetest.Late {
		return true
	}
	return n.result(rest, true, true, true)
}

// finish gives what is left and ends the session.
func (n *nova) finish() {
	if n.Fault() == servicetest.Late {
		n.Hold()
		return
	}
	if n.result(n.ear.Rest(), true, false, false) && n.Say(servicetest.JSON(map[string]any{"type": "Metadata", "request_id": request, "duration": n.at, "channels": 1})) {
		n.End(websocket.CloseNormalClosure, "")
	}
}

// turn is a session of /v2/listen.
type turn struct {
	*servicetest.Line
	ear   servicetest.Ear
	eager bool
	seq   int
	index int
	told  string
}

func (f *fake) flux(w http.ResponseWriter, r *http.Request) {
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	q := r.URL.Query()
	t := &turn{Line: l, eager: q.Get("eager_eot_threshold") != "", ear: servicetest.Ear{Rate: int(number(q.Get("sample_rate"))), Parts: l.Fault() == servicetest.Parts}}
	if !l.Say(servicetest.JSON(map[string]any{"type": "Connected", "request_id": request, "sequence_id": 0})) {
		return
	}
	for {
		c, sound, ok := read(l)
		switch {
		case !ok:
			return
		case c.Type == "CloseStream":
			t.finish()
			return
		case c.Type == "Configure":
			ok = l.Say(servicetest.JSON(map[string]any{"type": "ConfigureSuccess", "request_id": request}))
		case c.Type == "" && len(sound) > 0:
			ok = t.hear(sound)
		default:
			t.seq++
			l.Say(servicetest.JSON(map[string]any{"type": "Error", "code": "INVALID_MESSAGE", "description": "Unknown message.", "sequence_id": t.seq}))
			l.End(websocket.ClosePolicyViolation, "")
			return
		}
		if !ok {
			return
		}
	}
}

// hear takes sound. With an eager end, one is told within the turn and taken back.
func (t *turn) hear(sound []byte) bool {
	text, ended := t.ear.Hear(sound)
	if text == "" || text == t.told && !ended {
		return true
	}
	begun := t.told != ""
	t.told = text
	switch {
	case !begun && !t.info("StartOfTurn", text):
		return false
	case ended:
		return t.end(text)
	case begun && t.eager:
		t.eager = false
		return t.info("EagerEndOfTurn", text) && t.info("TurnResumed", text)
	}
	return t.info("Update", text)
}

// end ends a turn.
func (t *turn) end(text string) bool {
	ok := t.info("EndOfTurn", text)
	t.told = ""
	t.index++
	return ok
}

// info tells of the turn.
func (t *turn) info(event, text string) bool {
	t.seq++
	m := map[string]any{
		"type": "TurnInfo", "event": event, "turn_index": t.index, "transcript": text, "end_of_turn_confidence": 0.5, "request_id": request,
		"sequence_id": t.seq, "audio_window_start": 0.0, "audio_window_end": 1.0, "words": []any{map[string]any{"word": text, "confidence": 0.9}},
	}
	if t.Fault() == servicetest.Odd && !t.Say(servicetest.JSON(map[string]any{"type": "TurnHummed"})) {
		return false
	}
	return t.Result(servicetest.JSON(m), servicetest.Text(`{"type":"TurnIn`))
}

// finish ends the session. An odd server does not say that the turn has ended.
func (t *turn) finish() {
	rest := t.ear.Rest()
	switch {
	case t.Fault() == servicetest.Late:
		t.Hold()
		return
	case rest == "":
	case t.Fault() == servicetest.Odd && !t.info("Update", rest), t.Fault() != servicetest.Odd && !t.end(rest):
		return
	}
	t.End(websocket.CloseNormalClosure, "")
}

// speaker serves a session of /v1/speak.
func (f *fake) speaker(w http.ResponseWriter, r *http.Request) {
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	if _, ok := f.sound(r, ""); !ok || r.URL.Query().Get("encoding") != "linear16" {
		l.End(websocket.ClosePolicyViolation, "DATA-0000")
		return
	}
	if !l.Say(servicetest.JSON(map[string]any{"type": "Metadata", "request_id": request, "model_name": r.URL.Query().Get("model"), "model_uuid": request})) {
		return
	}
	flushed, text := 0, ""
	for {
		c, _, ok := read(l)
		switch {
		case !ok:
			return
		case c.Type == "Speak" && len([]rune(text+c.Text)) <= 2000:
			text += c.Text
		case c.Type == "Flush" && flushed == flushes:
			ok = l.Say(servicetest.JSON(map[string]any{"type": "Warning", "code": "EXCESSIVE_FLUSH", "description": "Flush was ignored: too many of them in a minute."}))
		case c.Type == "Flush":
			sound, _ := f.sound(r, text)
			text = ""
			for _, p := range servicetest.Pieces(sound, 4801) {
				if !l.Result(servicetest.Binary(p), servicetest.Text(`{"type":"Flu`)) {
					return
				}
			}
			ok = l.Say(servicetest.JSON(map[string]any{"type": "Flushed", "sequence_id": flushed}))
			flushed++
		case c.Type == "Clear":
			text = ""
			ok = l.Say(servicetest.JSON(map[string]any{"type": "Cleared", "sequence_id": flushed}))
		case c.Type == "Close":
			l.End(websocket.CloseNormalClosure, "")
			return
		case c.Type == "KeepAlive":
		default:
			l.End(websocket.CloseUnsupportedData, "MESSAGE-0000")
			return
		}
		if !ok {
			return
		}
	}
}
