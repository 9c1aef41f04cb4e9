package openairealtime

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const (
	pace        = 4 * time.Millisecond // between two events of a response
	longestPart = 15 << 20             // of one message, in base64
)

// talk is one session.
type talk struct {
	d     *Dialect
	line  *servicetest.Line
	model string
	set   *Settings // nil before the client has told them

	ear      servicetest.Ear
	buffer   int  // bytes that are not committed
	quiet    int  // bytes of silence since the last voice
	speaking bool // the detector hears a voice

	items   int
	lengths map[string]int  // bytes of the sound of answers, by item
	calls   map[string]bool // ids of calls; true: it was answered
	asked   string          // what the next response answers
	told    bool            // that is the result of a tool

	queue    []step // what is to be sent
	due      time.Time
	response string // that is running
	before   string // the last one that ended
	count    int    // of responses
}

// step is an event that is to be sent.
type step struct {
	of     string // the response that it belongs to
	item   string // of sound
	sound  int    // bytes of it
	result bool
	m      servicetest.Message
}

// run answers until the session is over.
func (t *talk) run() {
	for {
		wait := time.Duration(0)
		if len(t.queue) > 0 {
			if wait = time.Until(t.due); wait <= 0 {
				if !t.step() {
					return
				}
				continue
			}
		}
		m, err := t.line.Next(wait)
		if errors.Is(err, servicetest.ErrIdle) {
			continue
		}
		if err != nil || !t.take(m) {
			return
		}
	}
}

// event is a message of a client.
type event struct {
	ID      string          `json:"event_id"`
	Type    string          `json:"type"`
	Audio   *string         `json:"audio"`
	Image   string          `json:"image"`
	Session json.RawMessage `json:"session"`
	Item    json.RawMessage `json:"item"`
	ItemID  string          `json:"item_id"`
	Index   int             `json:"content_index"`
	End     *int            `json:"audio_end_ms"`
}

// take answers a message. It reports false when the session is over.
func (t *talk) take(m servicetest.Message) bool {
	var e event
	if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &e) != nil {
		return t.fails(&Problem{Code: "invalid_json", Message: "We could not parse the JSON of your message."}, "")
	}
	if t.line.Fault() == servicetest.Odd && !t.says("unknown.event", "more", []int{1}) {
		return false
	}
	p, ok := t.answer(e)
	if p != nil {
		return t.fails(p, e.ID)
	}
	return ok
}

// answer does what an event wants. It reports a problem, or false when the session is over.
func (t *talk) answer(e event) (*Problem, bool) {
	switch {
	case e.Type == "session.update":
		set, p := t.d.Settle(e.Session, t.model, t.line.Fault())
		if p != nil {
			return p, true
		}
		t.set = set
		return nil, t.says("session.updated", "session", map[string]any{"id": "sess_1", "object": "realtime.session", "type": "realtime"})
	case e.Type == "session.finish" && t.d.Finishes:
		_ = t.says("session.finished", "", nil)
		t.line.Hold()
		return nil, false
	case t.set == nil:
		return &Problem{Code: "session_not_configured", Message: "The session was not updated yet."}, true
	case e.Type == "input_audio_buffer.append":
		return t.append(e)
	case e.Type == "input_image_buffer.append" && t.d.Finishes && t.buffer > 0 && e.Image != "":
		return nil, true
	case e.Type == "input_audio_buffer.clear":
		t.clear()
		return nil, t.says("input_audio_buffer.cleared", "", nil)
	case e.Type == "input_audio_buffer.commit":
		if t.buffer < t.d.Rate/10*2 {
			return &Problem{Code: "input_audio_buffer_commit_empty", Message: "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio."}, true
		}
		return nil, t.commit()
	case e.Type == "conversation.item.create":
		return t.create(e.Item)
	case e.Type == "conversation.item.truncate" && t.d.Truncates:
		return t.truncate(e)
	case e.Type == "response.create" && t.response != "":
		return &Problem{Code: "conversation_already_has_active_response", Message: "Conversation already has an active response in progress: " + t.response + ". Wait until the response is finished before creating a new one."}, true
	case e.Type == "response.create":
		return nil, t.respond()
	case e.Type == "response.cancel" && t.response == "":
		return &Problem{Code: "response_cancel_not_active", Message: "Cancellation failed: no active response found"}, true
	case e.Type == "response.cancel":
		return nil, t.cancel("client_cancelled")
	}
	return &Problem{Code: "invalid_value", Message: "Invalid value: '" + e.Type + "'.", Param: "type"}, true
}

// append takes sound.
func (t *talk) append(e event) (*Problem, bool) {
	if e.Audio == nil || len(*e.Audio) > longestPart {
		return invalid("audio", "a base64 text of at most 15 MiB is required"), true
	}
	sound, err := base64.StdEncoding.DecodeString(*e.Audio)
	if err != nil {
		return &Problem{Code: "invalid_base64", Message: "Invalid 'audio'. Expected base64-encoded audio bytes.", Param: "audio"}, true
	}
	t.buffer += len(sound)
	t.ear.Hear(sound)
	second := t.d.Rate * 2
	if t.line.Fault() == servicetest.Ends && t.buffer > second/4 {
		return &Problem{Code: "session_expired", Message: "Your session hit the maximum duration of 60 minutes.", Close: websocket.CloseGoingAway}, true
	}
	if t.set.Manual {
		return nil, true
	}
	if servicetest.Loud(sound) {
		t.quiet = 0
		if t.speaking {
			return nil, true
		}
		t.speaking = true
		return nil, t.says("input_audio_buffer.speech_started", "item_id", t.item(), "audio_start_ms", 0) &&
			(t.response == "" || t.cancel("turn_detected"))
	}
	if t.quiet += len(sound); !t.speaking || t.quiet < int(t.set.Silence.Seconds()*float64(second)) {
		return nil, true
	}
	return nil, t.says("input_audio_buffer.speech_stopped", "item_id", t.item(), "audio_end_ms", t.buffer*1000/second) &&
		t.commit() && (t.set.Waits || t.respond())
}

func (t *talk) clear() {
	t.ear.Rest()
	t.buffer, t.quiet, t.speaking = 0, 0, false
}

// item is the name of the item that comes next.
func (t *talk) item() string { return fmt.Sprintf("item_%03d", t.items) }

// added tells of an item of the conversation, by the names of the dialect.
func (t *talk) added(item map[string]any) bool {
	t.items++
	if t.d.Old {
		return t.says("conversation.item.created", "item", item)
	}
	return t.says("conversation.item.added", "item", item) && t.says("conversation.item.done", "item", item)
}

// commit makes what was heard an item. Its words are told later.
func (t *talk) commit() bool {
	t.asked, t.told = t.ear.Rest(), false
	t.clear()
	id := t.item()
	if !t.says("input_audio_buffer.committed", "item_id", id, "previous_item_id", nil) ||
		!t.added(map[string]any{"id": id, "type": "message", "role": "user", "status": "completed", "content": []any{map[string]any{"type": "input_audio"}}}) {
		return false
	}
	if t.set.Transcribe {
		const kind = "conversation.item.input_audio_transcription."
		if !t.d.Old && t.asked != "" {
			for _, p := range servicetest.Thirds(t.asked) {
				t.send(step{m: message(kind+"delta", "item_id", id, "content_index", 0, "delta", p)})
			}
		}
		t.send(step{m: message(kind+"completed", "item_id", id, "content_index", 0, "transcript", t.asked)})
	}
	return true
}

// create takes an item of the client.
func (t *talk) create(raw json.RawMessage) (*Problem, bool) {
	var i struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Role    string `json:"role"`
		Call    string `json:"call_id"`
		Output  *string
		Content []struct{ Type, Text string }
	}
	if json.Unmarshal(raw, &i) != nil {
		return invalid("item", "expected an object"), true
	}
	switch answered, is := t.calls[i.Call]; {
	case i.Type == "function_call_output" && (!is || answered || i.Output == nil):
		return &Problem{Code: "invalid_tool_call_id", Message: "Tool call ID '" + i.Call + "' not found in conversation.", Param: "item.call_id"}, true
	case i.Type == "function_call_output":
		t.calls[i.Call] = true
		t.asked, t.told = *i.Output, true
	case i.Type == "function_call":
		t.calls[i.Call] = false
	case i.Type != "message" || i.Role != "user" && i.Role != "assistant" && i.Role != "system" || len(i.Content) == 0:
		return invalid("item.type", "expected a message with a role and content, a call or its output"), true
	}
	for _, c := range i.Content {
		text := "input_text"
		if i.Role == "assistant" {
			if text = "output_text"; t.d.Old {
				text = "text"
			}
		}
		if c.Type != text && (i.Role != "user" || c.Type != "input_image" && c.Type != "input_audio") {
			return invalid("item.content[0].type", "'"+c.Type+"'; expected '"+text+"'"), true
		}
		if i.Role == "user" {
			t.asked, t.told = c.Text, false
		}
	}
	id := i.ID
	if id == "" {
		id = t.item()
	}
	return nil, t.added(map[string]any{"id": id, "type": i.Type, "status": "completed"})
}

// truncate forgets what was not heard of an answer.
func (t *talk) truncate(e event) (*Problem, bool) {
	length, is := t.lengths[e.ItemID]
	length = length * 1000 / 48000
	switch {
	case !is || e.Index != 0 || e.End == nil || *e.End < 0:
		return &Problem{Code: "item_truncate_invalid_item_id", Message: "Item with item_id not found: " + e.ItemID, Param: "item_id"}, true
	case *e.End > length:
		return &Problem{Code: "invalid_value", Message: fmt.Sprintf("Audio content of %dms is already shorter than %dms", length, *e.End), Param: "audio_end_ms"}, true
	}
	t.lengths[e.ItemID] = *e.End * 48
	return nil, t.says("conversation.item.truncated", "item_id", e.ItemID, "content_index", 0, "audio_end_ms", *e.End)
}

// message is an event with members in pairs.
func message(kind string, pairs ...any) servicetest.Message {
	m := map[string]any{"type": kind, "event_id": "event_1"}
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok && name != "" {
			m[name] = pairs[i+1]
		}
	}
	return servicetest.JSON(m)
}

// says sends an event at once.
func (t *talk) says(kind string, pairs ...any) bool { return t.line.Say(message(kind, pairs...)) }

// fails sends an error, after which the session goes on unless the problem closes it.
func (t *talk) fails(p *Problem, event string) bool {
	kind := p.Type
	if kind == "" {
		kind = "invalid_request_error"
	}
	if !t.says("error", "error", map[string]any{"type": kind, "code": p.Code, "message": p.Message, "param": p.Param, "event_id": event}) {
		return false
	}
	if p.Close != 0 {
		t.line.End(p.Close, kind+"."+p.Code)
	}
	return p.Close == 0
}
