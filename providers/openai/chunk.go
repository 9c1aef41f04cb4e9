package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// chunk is one event of a chat stream, as servers differ in it.
type chunk struct {
	Choices []struct {
		Index        int        `json:"index"`
		Delta        piece      `json:"delta"`
		Message      *piece     `json:"message"` // the whole answer; amid a stream what was said is said again
		FinishReason string     `json:"finish_reason"`
		Usage        *wireUsage `json:"usage"` // Kimi
	} `json:"choices"`
	Usage *wireUsage `json:"usage"`
	Groq  struct {
		Usage *wireUsage `json:"usage"`
	} `json:"x_groq"`
}

// piece goes on with the answer.
type piece struct {
	Content          content           `json:"content"`
	ReasoningContent content           `json:"reasoning_content"`
	Reasoning        content           `json:"reasoning"` // the same by another name: vLLM, Ollama, OpenRouter
	Details          []json.RawMessage `json:"reasoning_details"`
	Refusal          content           `json:"refusal"` // the model's own words, in place of content
	ToolCalls        []callPiece       `json:"tool_calls"`
}

// content is a text, null, or a list of parts, of which some are thoughts.
type content struct{ text, thought string }

// UnmarshalJSON reads any of the three. What is none of them is taken for nothing.
func (c *content) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		if json.Unmarshal(raw, &c.text) != nil {
			c.text = ""
		}
		return nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     content `json:"text"`
		Thinking content `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return nil //nolint:nilerr // a shape of later versions holds nothing for us
	}
	for _, p := range parts {
		c.text += p.Text.text
		c.thought += p.Thinking.text + p.Thinking.thought
	}
	return nil
}

// wireUsage counts tokens, as servers name them.
type wireUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Hit        int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached     int `json:"cached_tokens"`           // Kimi
	InPrompt   struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InCompletion struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// UnmarshalJSON reads what it can: no answer fails for what it costs.
func (u *wireUsage) UnmarshalJSON(raw []byte) error {
	type plain wireUsage
	_ = json.Unmarshal(raw, (*plain)(u))
	return nil
}

func (u *wireUsage) usage() providers.Usage {
	return providers.Usage{
		Prompt: u.Prompt, Cached: max(u.Hit, u.Cached, u.InPrompt.Cached), Completion: u.Completion, Reasoning: u.InCompletion.Reasoning,
	}
}

// answer reads one answer. Usage that comes in every chunk grows, so the last one counts.
type answer struct {
	owner string
	mode  EchoMode

	think    generation.ThinkFilter
	unopened *generation.Unopened
	calls    assembler
	reasoned strings.Builder // what is to be echoed as reasoning_content
	details  detailList
	streamed bool // a piece has come
	complete bool // the server said so
	cut      bool // by the limit of its length
}

// Event reads one event.
func (a *answer) Event(e sse.Event, give generation.Give) (bool, error) {
	if string(bytes.TrimSpace(e.Data)) == sse.Done {
		a.complete = true
		return true, nil
	}
	var c chunk
	wrong := json.Unmarshal(e.Data, &c)
	if fault := generation.FaultOf(e.Data); fault != nil {
		return false, fault.Refusal()
	}
	if e.Name == "error" {
		return false, transport.Refused(providers.Unavailable, "", string(e.Data))
	}
	if wrong != nil {
		return false, fmt.Errorf("an event is not the JSON expected: %w", wrong)
	}
	for _, u := range []*wireUsage{c.Groq.Usage, c.Usage} {
		if u != nil {
			give(providers.Delta{Usage: u.usage()})
		}
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		if choice.Index != 0 {
			continue // we ask for one choice
		}
		if choice.Usage != nil {
			give(providers.Delta{Usage: choice.Usage.usage()})
		}
		if a.complete {
			continue
		}
		part, whole := &choice.Delta, choice.Message != nil && !a.streamed
		if whole {
			part = choice.Message
		}
		a.streamed = true
		if err := a.piece(part, give); err != nil {
			return false, err
		}
		if err := a.finish(choice.FinishReason); err != nil {
			return false, err
		}
		a.complete = a.complete || whole
	}
	return a.complete, nil
}

// Whole reports whether a body is an answer that came in one piece.
func (w *wire) Whole(body []byte) bool {
	var c chunk
	return json.Unmarshal(body, &c) == nil && len(c.Choices) > 0 && c.Choices[0].Message != nil
}

// piece gives what a piece of the answer holds.
func (a *answer) piece(p *piece, give generation.Give) error {
	thought := p.ReasoningContent.text
	if thought == "" {
		thought = p.Reasoning.text
	}
	if added := a.details.add(p.Details); thought == "" {
		thought = added
	}
	if a.mode == EchoContent && a.reasoned.Len() <= providers.MaxEcho {
		a.reasoned.WriteString(thought)
	}
	if thought+p.Content.thought != "" {
		a.think.Told()
	}
	text, inline := a.think.Push(p.Content.text + p.Refusal.text)
	give(providers.Delta{Text: text, Thought: thought + p.Content.thought + inline, ToolCalls: a.think.Calls()})
	for _, call := range p.ToolCalls {
		calls, err := a.calls.push(call)
		give(providers.Delta{ToolCalls: a.owned(calls)}) // those that are complete by the piece
		if err != nil {
			return err
		}
	}
	return nil
}

// finish takes the reason for which an answer has ended; "" is none. What a filter or a
// limit has cut off is an answer as far as it goes.
func (a *answer) finish(reason string) error {
	switch reason {
	case "":
		return nil
	case "error", "network_error", "insufficient_system_resource", "abort":
		return transport.Refused(providers.Unavailable, reason, "the server ended the answer with an error")
	case "sensitive", "content_filter":
		if !a.think.Solid() {
			return transport.Refused(providers.BadRequest, reason, "the server's filter refused to answer")
		}
	}
	a.complete, a.cut = true, reason == "length"
	return nil
}

// End gives what was held back.
func (a *answer) End(give generation.Give) error {
	a.unopened.Learn(&a.think, a.cut || a.calls.count > 0)
	text, thought := a.think.Flush()
	give(providers.Delta{Text: text, Thought: thought, ToolCalls: a.think.Calls()})
	calls, err := a.calls.give(true)
	if err != nil {
		return err
	}
	give(providers.Delta{ToolCalls: a.owned(calls), Echo: a.echo()})
	return nil
}

// owned names the owner of what calls want back.
func (a *answer) owned(calls []providers.ToolCall) []providers.ToolCall {
	for i := range calls {
		if calls[i].Echo.JSON != "" {
			calls[i].Echo.Owner = a.owner
		}
	}
	return calls
}

// echo returns what the server wants back with the message.
func (a *answer) echo() providers.Echo {
	var v any
	switch {
	case a.mode == EchoContent && a.reasoned.Len() > 0:
		v = map[string]string{"reasoning_content": a.reasoned.String()}
	case a.mode == EchoDetails && len(a.details.all) > 0:
		v = map[string]any{"reasoning_details": a.details.all}
	default:
		return providers.Echo{}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return providers.Echo{}
	}
	return providers.NewEcho(a.owner, string(raw))
}

// detailList puts the pieces of reasoning_details together. Some servers send each
// piece with all that came before it.
type detailList struct {
	all  []map[string]any
	size int
}

// add takes the details of a chunk, and returns the reasoning that is new in them.
func (l *detailList) add(details []json.RawMessage) (thought string) {
	for _, raw := range details {
		var d map[string]any
		if l.size += len(raw); json.Unmarshal(raw, &d) != nil {
			continue
		}
		before := l.same(d)
		for _, key := range []string{"text", "summary"} {
			text, _ := d[key].(string)
			known := ""
			if before != nil {
				known, _ = before[key].(string)
			}
			if rest, cumulative := strings.CutPrefix(text, known); cumulative {
				text, d[key] = rest, text
			} else {
				d[key] = known + text
			}
			if d[key] == "" {
				delete(d, key)
			}
			thought += text
		}
		switch {
		case before != nil:
			for key, value := range d {
				if value != nil {
					before[key] = value
				}
			}
		case l.size <= providers.MaxEcho:
			l.all = append(l.all, d)
		}
	}
	return thought
}

// same finds the entry that a piece goes on; nil: it begins one.
func (l *detailList) same(d map[string]any) map[string]any {
	place := func(d map[string]any) string { return fmt.Sprint(d["type"], d["index"], d["id"]) }
	for _, other := range l.all {
		if d["data"] == nil && place(other) == place(d) {
			return other
		}
	}
	return nil
}
