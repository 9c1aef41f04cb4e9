package responses

import (
	"bytes"
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
	Type     string          `json:"type"`
	Delta    string          `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Code     code            `json:"code"` // of an error, which is flat
	Message  string          `json:"message"`
	Response struct {
		Error *struct {
			Code    code   `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input   int `json:"input_tokens"`
			Output  int `json:"output_tokens"`
			InInput struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			InOutput struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

// code is of an error. Others than OpenAI write numbers.
type code string

// UnmarshalJSON takes a text, a number or null.
func (c *code) UnmarshalJSON(raw []byte) error {
	if *c = code(strings.Trim(string(raw), `"`)); *c == "null" {
		*c = ""
	}
	return nil
}

// item is a whole part of the answer.
type item struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// answer reads one answer.
type answer struct {
	owner string
	back  []json.RawMessage // the reasoning that the model wants back
	think generation.ThinkFilter
	spoke bool
}

// Event reads one event. Those that are not known pass.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if string(bytes.TrimSpace(e.Data)) == sse.Done { // others than OpenAI send it
		return false, nil
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(e.Data, &kind); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	ev := event{Type: cmp.Or(kind.Type, e.Name)}
	if !known(ev.Type) {
		return false, nil
	}
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		text, thought := a.think.Push(ev.Delta)
		a.spoke = a.spoke || text != ""
		give(providers.Delta{Text: text, Thought: thought})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		give(providers.Delta{Thought: ev.Delta})
	case "response.output_item.done":
		return false, a.item(ev.Item, give)
	case "response.completed", "response.incomplete":
		a.count(&ev, give)
		if reason := ev.Response.Incomplete.Reason; reason == "content_filter" && !a.spoke {
			return false, transport.Refused(providers.BadRequest, reason, "the server's filter refused to answer")
		}
		return true, nil
	case "response.failed", "error", "":
		return false, a.failure(&ev, e.Data)
	}
	return false, nil
}

// known reports whether events of a type are read. What others hold may have any shape.
func known(kind string) bool {
	switch kind {
	case "", "error", "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta",
		"response.output_item.done", "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// item takes a whole part: a call, or reasoning.
func (a *answer) item(raw json.RawMessage, give generation.Give) error {
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return fmt.Errorf("an item is not the JSON expected: %w", err)
	}
	switch it.Type {
	case "function_call":
		if it.Name == "" {
			return errors.New("a tool call has no name")
		}
		c := providers.ToolCall{ID: it.CallID, Name: it.Name, Arguments: strings.TrimSpace(it.Arguments)}
		if c.ID == "" {
			c.ID = generation.NewID()
		}
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		a.spoke = true
		give(providers.Delta{ToolCalls: []providers.ToolCall{c}})
	case "reasoning":
		if bytes.Contains(raw, []byte(`"encrypted_content"`)) { // else it would be looked for at the service
			a.back = append(a.back, bytes.Clone(raw))
		}
	}
	return nil
}

// count gives what the answer has cost.
func (a *answer) count(ev *event, give generation.Give) {
	if u := ev.Response.Usage; u != nil {
		give(providers.Delta{Usage: providers.Usage{
			Prompt: u.Input, Cached: u.InInput.Cached, Completion: u.Output, Reasoning: u.InOutput.Reasoning,
		}})
	}
}

// failure makes the error of an event that tells of one, in any of the shapes.
func (a *answer) failure(ev *event, raw []byte) error {
	code, words := ev.Code, ev.Message
	if e := ev.Response.Error; e != nil {
		code, words = e.Code, e.Message
	}
	if words == "" {
		if fault := generation.FaultOf(raw); fault != nil {
			return fault.Refusal()
		}
		if ev.Type == "" { // an event of another protocol
			return nil
		}
		words = "the server ended the answer with an error"
	}
	return transport.Refused(generation.KindOfCode(string(code)), string(code), words)
}

// End gives what the model wants back.
func (a *answer) End(give generation.Give) error {
	text, thought := a.think.Flush()
	give(providers.Delta{Text: text, Thought: thought})
	if len(a.back) == 0 {
		return nil
	}
	raw, err := json.Marshal(a.back)
	if err != nil {
		return fmt.Errorf("keep the reasoning: %w", err)
	}
	give(providers.Delta{Echo: providers.NewEcho(a.owner, string(raw))})
	return nil
}
