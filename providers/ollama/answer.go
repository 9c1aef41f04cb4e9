package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// message is one of the dialogue.
type message struct {
	Role      string   `json:"role"`
	Content   string   `json:"content"`
	Thinking  string   `json:"thinking,omitempty"`
	Images    []string `json:"images,omitempty"`
	ToolCalls []call   `json:"tool_calls,omitempty"`
	ToolName  string   `json:"tool_name,omitempty"`
	CallID    string   `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string `json:"id,omitempty"`
	Function struct {
		Index     *int            `json:"index,omitempty"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object
	} `json:"function"`
}

// line is one of the answer.
type line struct {
	Message    message `json:"message"`
	Done       bool    `json:"done"`
	DoneReason string  `json:"done_reason"`
	Prompt     int     `json:"prompt_eval_count"`
	Completion int     `json:"eval_count"`
}

// answer reads one answer. A model that is not told whether to think may do so within its text.
type answer struct{ think generation.ThinkFilter }

// Event reads one line.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if fault := generation.FaultOf(e.Data); fault != nil {
		return false, fault.Refusal()
	}
	var l line
	if err := json.Unmarshal(e.Data, &l); err != nil {
		return false, fmt.Errorf("a line is not the JSON expected: %w", err)
	}
	text, thought := a.think.Push(l.Message.Content)
	d := providers.Delta{Text: text, Thought: l.Message.Thinking + thought, ToolCalls: a.think.Calls()}
	for _, c := range l.Message.ToolCalls {
		made := providers.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: string(bytes.TrimSpace(c.Function.Arguments))}
		if made.Name == "" {
			return false, errors.New("a tool call has no name")
		}
		if made.ID == "" {
			made.ID = generation.NewID()
		}
		if made.Arguments == "" || made.Arguments == "null" {
			made.Arguments = "{}"
		}
		d.ToolCalls = append(d.ToolCalls, made)
	}
	give(d)
	if l.Done {
		give(providers.Delta{Usage: providers.Usage{Prompt: l.Prompt, Completion: l.Completion}})
		if l.DoneReason == "load" || l.DoneReason == "unload" {
			return false, transport.Refused(providers.Unavailable, l.DoneReason, "the model was loaded, but did not answer")
		}
	}
	return l.Done, nil
}

// End gives what was held back.
func (a *answer) End(give generation.Give) error {
	text, thought := a.think.Flush()
	give(providers.Delta{Text: text, Thought: thought, ToolCalls: a.think.Calls()})
	return nil
}
