package dify

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// event is one of the stream.
type event struct {
	Event    string          `json:"event"`
	Task     string          `json:"task_id"`
	Talk     string          `json:"conversation_id"`
	Answer   string          `json:"answer"`
	Thought  string          `json:"thought"`
	Status   json.RawMessage `json:"status"` // a number
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	Metadata struct {
		Usage usage `json:"usage"`
	} `json:"metadata"`
	Data json.RawMessage `json:"data"` // of the steps of a workflow it may have any shape
}

// data holds the fields of a workflow's text and end.
type data struct {
	Text      string                     `json:"text"`
	Reasoning string                     `json:"reasoning"`
	Status    string                     `json:"status"`
	Error     string                     `json:"error"`
	Outputs   map[string]json.RawMessage `json:"outputs"`
}

// data reads what an event holds; nothing of what has another shape.
func (e *event) data() (d data) {
	_ = json.Unmarshal(e.Data, &d) // it keeps what it could read
	return d
}

// usage counts tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
}

// voice says which events hold text that is to be said.
type voice int

const (
	either voice = iota // nothing has told yet
	agent               // an agent speaks: its message repeats all of it
	nobody              // the answer was replaced: what was said stands
)

// answer reads one answer.
type answer struct {
	turn     *platform.Turn
	workflow bool
	output   string
	voice    voice  // whose text is said
	spoke    bool   // there is text
	failed   string // why the workflow behind the app has failed: an error follows
}

// Event reads one event. Those that are not known pass.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if e.Name == "ping" && len(e.Data) == 0 {
		return false, nil
	}
	var ev event
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	a.turn.Run, a.turn.Talk = cmp.Or(ev.Task, a.turn.Run), cmp.Or(ev.Talk, a.turn.Talk)
	switch ev.Event {
	case "message":
		if a.voice == either {
			a.say(ev.Answer, give)
		}
	case "agent_message":
		if a.voice != nobody {
			a.voice = agent
			a.say(ev.Answer, give)
		}
	case "text_chunk":
		if a.workflow {
			a.say(ev.data().Text, give)
		}
	case "agent_thought":
		give(providers.Delta{Thought: ev.Thought})
	case "reasoning_chunk":
		give(providers.Delta{Thought: ev.data().Reasoning})
	case "message_replace": // of moderation: what was spoken is spoken
		if !a.spoke {
			a.say(ev.Answer, give)
		}
		a.voice = nobody
	case "message_end":
		give(providers.Delta{Usage: providers.Usage{Prompt: ev.Metadata.Usage.Prompt, Completion: ev.Metadata.Usage.Completion}})
		return true, nil
	case "workflow_finished":
		return a.finished(&ev, give)
	case "human_input_required", "workflow_paused":
		if a.spoke {
			return true, nil
		}
		return false, transport.Refused(providers.BadRequest, ev.Event, "the app waits for a person")
	case "error":
		return false, a.fault(&ev)
	}
	return false, nil
}

// say gives text.
func (a *answer) say(text string, give generation.Give) {
	a.spoke = a.spoke || text != ""
	give(providers.Delta{Text: text})
}

// fault makes the error of an event.
func (a *answer) fault(ev *event) error {
	r := transport.Refused(providers.Unavailable, ev.Code, cmp.Or(ev.Message, a.failed, "the app has failed"))
	if status, err := strconv.Atoi(string(ev.Status)); err == nil && status >= 400 {
		r.Status, r.Kind = status, transport.KindOf(status)
	}
	return r
}

// finished reads the end of a workflow. That of a chatflow is no end of the answer, but
// for one that was stopped.
func (a *answer) finished(ev *event, give generation.Give) (bool, error) {
	end := ev.data()
	switch end.Status {
	case "failed":
		a.failed = cmp.Or(end.Error, "the workflow has failed")
		if a.workflow && !a.spoke {
			return false, transport.Refused(providers.Unavailable, "", a.failed)
		}
		return a.workflow, nil
	case "stopped":
		if !a.spoke {
			return false, errors.New("the workflow was stopped")
		}
		return true, nil
	}
	if !a.workflow {
		return false, nil
	}
	if !a.spoke {
		text, err := a.result(end.Outputs)
		if err != nil {
			return false, err
		}
		a.say(text, give)
	}
	return true, nil
}

// result finds what a workflow without a stream has made: the output that is named as the
// answer, or its only text.
func (a *answer) result(outputs map[string]json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(outputs[a.output], &text) == nil {
		return text, nil
	}
	var found, names []string
	for name, raw := range outputs {
		names = append(names, name)
		if json.Unmarshal(raw, &text) == nil {
			found = append(found, text)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	slices.Sort(names)
	return "", transport.Refused(providers.BadRequest, "", fmt.Sprintf("the workflow has no output %q but %q: output in the settings names the one to be said", a.output, names))
}

// EOF ends an answer that was not complete: what has failed before is why.
func (a *answer) EOF(generation.Give) error {
	if a.failed != "" {
		return transport.Refused(providers.Unavailable, "", a.failed)
	}
	return generation.ErrIncomplete
}

// End has nothing left to give.
func (a *answer) End(generation.Give) error { return nil }
