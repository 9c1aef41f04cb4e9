package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// event is one of the stream.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	Block struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
		Text string `json:"text"`
		Data string `json:"data"` // of a thought that may not be read
		// What others than Anthropic give at once.
		Input     json.RawMessage `json:"input"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		JSON       string `json:"partial_json"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// usage counts tokens. Later ones replace earlier ones, where they are not zero.
type usage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
}

// block is a content block that is open.
type block struct {
	kind, id, name string
	text           strings.Builder // arguments or thought
	input          string          // arguments that came at once
	signature      string
	data           string
}

// answer reads one answer.
type answer struct {
	owner    string
	open     map[int]*block
	thoughts []any
	cost     usage
	spoke    bool // there is text
}

// Event reads one event. Those that are not known pass.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	var ev event
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	switch cmp.Or(ev.Type, e.Name) {
	case "error":
		if fault := generation.FaultOf(e.Data); fault != nil {
			return false, fault.Refusal()
		}
		return false, errors.New("the server ended the answer with an error")
	case "message_start":
		a.count(ev.Message.Usage, give)
	case "content_block_start":
		if a.open == nil {
			a.open = map[int]*block{}
		}
		a.start(&ev, give)
	case "content_block_delta":
		a.delta(&ev, give)
	case "content_block_stop":
		return false, a.stop(ev.Index, give)
	case "message_delta":
		a.count(ev.Usage, give)
		if ev.Delta.StopReason == "refusal" && !a.spoke { // else what was said counts
			return false, transport.Refused(providers.BadRequest, ev.Delta.StopReason, "the model refused to answer")
		}
		return ev.Delta.StopReason != "", nil
	case "message_stop":
		return true, nil
	}
	return false, nil
}

// start takes the beginning of a block.
func (a *answer) start(ev *event, give generation.Give) {
	b := &block{kind: ev.Block.Type, id: ev.Block.ID, name: ev.Block.Name, data: ev.Block.Data, input: string(ev.Block.Input), signature: ev.Block.Signature}
	a.open[ev.Index] = b
	switch b.kind {
	case "text":
		a.spoke = a.spoke || ev.Block.Text != ""
		give(providers.Delta{Text: ev.Block.Text})
	case "thinking":
		b.text.WriteString(ev.Block.Thinking)
		give(providers.Delta{Thought: ev.Block.Thinking})
	}
}

// count keeps what the answer has cost so far.
func (a *answer) count(u usage, give generation.Give) {
	a.cost = usage{max(a.cost.Input, u.Input), max(a.cost.Output, u.Output), max(a.cost.Created, u.Created), max(a.cost.Read, u.Read)}
	give(providers.Delta{Usage: providers.Usage{
		Prompt: a.cost.Input + a.cost.Created + a.cost.Read, Cached: a.cost.Read, Completion: a.cost.Output,
	}})
}

// delta takes a piece of a block.
func (a *answer) delta(ev *event, give generation.Give) {
	b := a.open[ev.Index]
	switch {
	case ev.Delta.Type == "text_delta":
		a.spoke = a.spoke || ev.Delta.Text != ""
		give(providers.Delta{Text: ev.Delta.Text})
	case b == nil:
	case ev.Delta.Type == "input_json_delta":
		b.text.WriteString(ev.Delta.JSON)
	case ev.Delta.Type == "thinking_delta":
		b.text.WriteString(ev.Delta.Thinking)
		give(providers.Delta{Thought: ev.Delta.Thinking})
	case ev.Delta.Type == "signature_delta":
		b.signature += ev.Delta.Signature
	}
}

// stop takes the end of a block: a call is whole then.
func (a *answer) stop(index int, give generation.Give) error {
	b := a.open[index]
	if b == nil {
		return nil
	}
	delete(a.open, index)
	switch b.kind {
	case "tool_use":
		if b.name == "" {
			return errors.New("a tool call has no name")
		}
		c := providers.ToolCall{ID: b.id, Name: b.name, Arguments: strings.TrimSpace(b.text.String())}
		if c.ID == "" {
			c.ID = generation.NewID()
		}
		if c.Arguments == "" {
			c.Arguments = string(generation.Object(b.input))
		}
		give(providers.Delta{ToolCalls: []providers.ToolCall{c}})
	case "thinking":
		a.thoughts = append(a.thoughts, map[string]string{"type": "thinking", "thinking": b.text.String(), "signature": b.signature})
	case "redacted_thinking":
		a.thoughts = append(a.thoughts, map[string]string{"type": "redacted_thinking", "data": b.data})
	}
	return nil
}

// End gives what the model wants back.
func (a *answer) End(give generation.Give) error {
	if len(a.thoughts) == 0 {
		return nil
	}
	raw, err := json.Marshal(a.thoughts)
	if err != nil {
		return fmt.Errorf("keep the thoughts: %w", err)
	}
	give(providers.Delta{Echo: providers.NewEcho(a.owner, string(raw))})
	return nil
}
