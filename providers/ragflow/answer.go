package ragflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// event is one of the stream: an assistant's has a code, an agent's a name.
type event struct {
	Code    json.Number     `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"` // true at the end
	Event   string          `json:"event"`
	Session string          `json:"session_id"`
}

// data holds the fields of an event.
type data struct {
	Answer     string `json:"answer"`
	Content    string `json:"content"`
	Session    string `json:"session_id"`
	StartThink bool   `json:"start_to_think"`
	EndThink   bool   `json:"end_to_think"`
}

// answer reads one answer.
type answer struct {
	turn     *platform.Turn
	said     platform.Growing
	thinking bool
	ended    bool // an agent's message is over
}

// Event reads one event. Those of an agent's steps pass.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if strings.TrimSpace(string(e.Data)) == sse.Done {
		return true, nil
	}
	var ev event
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if code := ev.Code.String(); code != "" && code != "0" {
		return false, refusal(code, ev.Message)
	}
	raw := bytes.TrimSpace(ev.Data)
	if string(raw) == "true" {
		return true, nil
	}
	a.turn.Talk = cmp.Or(ev.Session, a.turn.Talk)
	if len(raw) == 0 || raw[0] != '{' {
		return false, nil
	}
	var d data
	if err := json.Unmarshal(raw, &d); err != nil {
		if ev.Event != "" && ev.Event != "message" {
			return false, nil
		}
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	a.turn.Talk = cmp.Or(d.Session, a.turn.Talk)
	return false, a.take(&ev, &d, give)
}

// take gives what an event says.
func (a *answer) take(ev *event, d *data, give generation.Give) error {
	switch ev.Event {
	case "":
		if fault, ok := strings.CutPrefix(d.Answer, "**ERROR**: "); ok { // of the model behind it
			return refusal("", fault)
		}
		text := a.said.New(d.Answer)
		a.put(text, d, give)
	case "message":
		a.put(d.Content, d, give)
	case "message_end":
		a.ended = true
	case "error":
		return refusal("", cmp.Or(ev.Message, d.Content, "the agent has failed"))
	}
	return nil
}

// put gives a text, or a thought where it is one.
func (a *answer) put(text string, d *data, give generation.Give) {
	if d.StartThink {
		a.thinking = true
	}
	if a.thinking {
		give(providers.Delta{Thought: text})
	} else {
		give(providers.Delta{Text: text})
	}
	if d.EndThink {
		a.thinking = false
	}
}

// refusal makes the error of a code.
func refusal(code, said string) error {
	if said == "" && code == "" {
		return errors.New("the assistant has failed")
	}
	return transport.Refused(providers.Unavailable, code, said)
}

// EOF ends an answer: the last event may be missing.
func (a *answer) EOF(generation.Give) error {
	if !a.ended {
		return generation.ErrIncomplete
	}
	return nil
}

// End has nothing left to give.
func (a *answer) End(generation.Give) error { return nil }
