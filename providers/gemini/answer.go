package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// response is one event of the stream.
type response struct {
	Candidates []struct {
		Content      content `json:"content"`
		FinishReason string  `json:"finishReason"`
		Message      string  `json:"finishMessage"`
	} `json:"candidates"`
	Feedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

// answer reads one answer.
type answer struct {
	owner     string
	spoke     bool // there was text or a call
	signature string
	over      bool
}

// Event reads one event, which may also be a line of an array.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	raw := bytes.TrimSpace(e.Data)
	if string(raw) == sse.Done { // proxies send it
		return a.over, nil
	}
	if fault := generation.FaultOf(raw); fault != nil {
		return false, fault.Refusal()
	}
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if r.Usage != nil {
		give(providers.Delta{Usage: providers.Usage{
			Prompt: r.Usage.Prompt, Cached: r.Usage.Cached, Completion: r.Usage.Candidates + r.Usage.Thoughts, Reasoning: r.Usage.Thoughts,
		}})
	}
	if reason := r.Feedback.BlockReason; reason != "" {
		return false, transport.Refused(providers.BadRequest, reason, "the prompt was blocked")
	}
	if len(r.Candidates) == 0 || a.over {
		return a.over, nil
	}
	for _, p := range r.Candidates[0].Content.Parts {
		if err := a.part(p, give); err != nil {
			return false, err
		}
	}
	return a.finish(r.Candidates[0].FinishReason, r.Candidates[0].Message)
}

// part gives what a part holds.
func (a *answer) part(p part, give generation.Give) error {
	switch {
	case p.Call != nil:
		if p.Call.Name == "" {
			return errors.New("a tool call has no name")
		}
		a.spoke = true
		give(providers.Delta{ToolCalls: []providers.ToolCall{a.call(p)}})
	case p.Thought:
		give(providers.Delta{Thought: p.Text})
	default:
		if p.Signature != "" {
			a.signature = p.Signature
		}
		a.spoke = a.spoke || p.Text != ""
		give(providers.Delta{Text: p.Text})
	}
	return nil
}

// call makes a call. Many models give it no id.
func (a *answer) call(p part) providers.ToolCall {
	c := providers.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Arguments: string(bytes.TrimSpace(p.Call.Args))}
	if c.ID == "" {
		c.ID = generation.NewID()
	}
	if c.Arguments == "" || c.Arguments == "null" {
		c.Arguments = "{}"
	}
	c.Echo = a.echo(echo{p.Call.ID, p.Signature})
	return c
}

func (a *answer) echo(e echo) providers.Echo {
	raw, err := json.Marshal(e)
	if err != nil {
		return providers.Echo{}
	}
	return providers.NewEcho(a.owner, string(raw))
}

// finish takes the reason for which an answer has ended; "" is none. What was cut off is an
// answer as far as it goes.
func (a *answer) finish(reason, words string) (bool, error) {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
		return false, nil
	case "STOP", "MAX_TOKENS":
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "OTHER":
		if !a.spoke {
			return false, transport.Refused(providers.Unavailable, reason, strings.TrimSpace("the model gave no answer "+words))
		}
	default: // a filter
		if !a.spoke {
			return false, transport.Refused(providers.BadRequest, reason, strings.TrimSpace("the answer was withheld "+words))
		}
	}
	a.over = true
	return true, nil
}

// End gives what the model wants back with its words.
func (a *answer) End(give generation.Give) error {
	if a.signature != "" {
		give(providers.Delta{Echo: a.echo(echo{Signature: a.signature})})
	}
	return nil
}
