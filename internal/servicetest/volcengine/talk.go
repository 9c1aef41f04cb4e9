package volcengine

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// talk is a connection over which sessions run one after another.
type talk struct {
	*fake
	line     *servicetest.Line
	resource string
	session  string // that is open, or ""
	before   string // the session before this one
	want     wanted
	text     string
}

// converse speaks texts that come in pieces, one session after another.
func (f *fake) converse(w http.ResponseWriter, r *http.Request) {
	line, ok := f.Line(w, r, upgraded(r))
	if !ok {
		return
	}
	defer line.Close()
	t := &talk{fake: f, line: line, resource: r.Header.Get("X-Api-Resource-Id")}
	if !t.connect() {
		return
	}
	for {
		m, err := line.Next(Idle)
		if errors.Is(err, servicetest.ErrIdle) {
			// The service forgets the connection and says so when something comes.
			if _, err = line.Next(0); err == nil {
				line.End(websocket.CloseNormalClosure, "non-exist session: "+t.session)
			}
			return
		}
		if err != nil {
			return
		}
		req, err := parse(m.Data)
		if err != nil || m.Type != websocket.BinaryMessage || req.kind != fullRequest || req.flags != evented {
			line.Say(wrong(badRequest, "not an event"))
			return
		}
		if !t.take(req) {
			return
		}
	}
}

// connect waits for the start of the connection.
func (t *talk) connect() bool {
	m, err := t.line.Next(0)
	if err != nil {
		return false
	}
	if req, err := parse(m.Data); err != nil || req.event != startConnection {
		t.line.Say(wrong(badRequest, "no StartConnection"))
		return false
	}
	if t.line.Fault() == servicetest.RateLimited {
		t.line.Say(t.failed(connectionFailed, "c", clientError, "quota exceeded for types: concurrency"))
		return false
	}
	return t.line.Say(t.event(connectionStarted, "c", nil))
}

// take handles an event.
func (t *talk) take(req frame) bool {
	if req.event != finishConnection && req.event != startSession && (t.session == "" || req.id != t.session) {
		if req.event == cancelSession || req.event == finishSession {
			return true // of a session that is over
		}
		t.line.End(websocket.CloseNormalClosure, "non-exist session: "+req.id)
		return false
	}
	switch req.event {
	case finishConnection:
		t.line.Say(t.event(connectionFinished, "c", nil))
		t.line.End(websocket.CloseNormalClosure, "finished")
		return false
	case startSession:
		return t.start(req)
	case taskRequest:
		var want wanted
		if json.Unmarshal(req.payload, &want) != nil {
			return t.fail(badRequest, "broken request")
		}
		if t.text += want.Params.Text; len([]rune(t.text)) > longest {
			return t.fail(40402003, "text too long")
		}
		return true
	case cancelSession:
		id := t.session
		t.end()
		return t.line.Say(t.sound(id, servicetest.Speech("x", 24000)), t.event(sessionCanceled, id, nil))
	case finishSession:
		return t.speak(t.want, t.text)
	}
	t.line.Say(wrong(badRequest, "unknown event"))
	return false
}

// start begins a session, if it may be.
func (t *talk) start(req frame) bool {
	if t.session != "" {
		return t.fail(tooMany, "session is already running")
	}
	t.begin(req.id)
	if req.id == "" || t.taken(req.id) {
		return t.fail(clientError, "the session id was used before")
	}
	if json.Unmarshal(req.payload, &t.want) != nil || t.want.Namespace != "" && t.want.Namespace != "BidirectionalTTS" {
		return t.fail(badRequest, "broken request")
	}
	if code, words := t.refusal(t.want, t.resource, t.line.Fault()); code != 0 {
		return t.fail(code, words)
	}
	early, err := t.line.Next(patient)
	if err == nil {
		if f, err := parse(early.Data); err == nil && f.event == cancelSession {
			t.end()
			return t.line.Say(t.event(sessionCanceled, req.id, nil))
		}
		return t.fail(clientError, "text came before the session had started")
	}
	if t.line.Fault() == servicetest.Stale && t.before != "" {
		t.line.Say(t.sound(t.before, servicetest.Speech("stale", 24000)), t.event(sentenceEnd, t.before, nil))
	}
	return t.line.Say(t.event(sessionStarted, req.id, nil))
}

// begin makes a session the one that runs.
func (t *talk) begin(id string) { t.session, t.text, t.want = id, "", wanted{} }

// end makes none the one that runs.
func (t *talk) end() { t.before, t.session = t.session, "" }

// fail ends the session with an error, and the connection a while later.
func (t *talk) fail(code int, words string) bool {
	return t.line.Say(t.failed(sessionFailed, t.session, code, words)) && t.gone()
}

func (t *talk) gone() bool {
	t.end()
	return true
}

// speak speaks the text of the session and ends it.
func (t *talk) speak(want wanted, text string) bool {
	id := t.session
	defer t.end()
	if text == "" {
		return t.line.Say(t.event(sessionFinished, id, map[string]any{"status_code": success, "message": "ok"}))
	}
	if !t.line.Say(t.event(sentenceStart, id, map[string]any{"res_params": map[string]string{"text": text}})) {
		return false
	}
	odd := []servicetest.Message{t.event(usage, id, map[string]any{"unheard_of": true}), t.event(response, id, map[string]any{"no": "sound"})}
	if t.line.Fault() == servicetest.Odd && !t.line.Say(odd...) {
		return false
	}
	for _, p := range t.pieces(want, text, t.line.Fault()) {
		if !t.line.Result(t.sound(id, p), broken) {
			return false
		}
		m, err := t.line.Next(pause)
		if errors.Is(err, servicetest.ErrLeft) {
			return false
		}
		if req, broken := parse(m.Data); err == nil && (broken != nil || req.event != cancelSession) {
			return t.fail(tooMany, "session is already running") && false
		}
	}
	return t.line.Say(t.event(sentenceEnd, id, map[string]any{"res_params": map[string]string{"text": text}}),
		t.event(sessionFinished, id, map[string]any{"status_code": success, "message": "ok"}))
}

// event is an event without sound.
func (t *talk) event(event int32, id string, payload map[string]any) servicetest.Message {
	if payload == nil {
		payload = map[string]any{}
	}
	return frame{kind: fullAnswer, flags: evented, form: inJSON, event: event, id: id, payload: servicetest.JSON(payload).Data}.message()
}

// failed is an event that says why something failed.
func (t *talk) failed(event int32, id string, code int, words string) servicetest.Message {
	return t.event(event, id, map[string]any{"status_code": code, "message": words})
}

// sound is a piece of sound.
func (t *talk) sound(id string, b []byte) servicetest.Message {
	return frame{kind: audioAnswer, flags: evented, form: raw, event: response, id: id, payload: b}.message()
}
