// Package anthropic is a fake of Anthropic's Messages: it thinks in blocks whose signatures
// must come back, and wants a result for each call of a tool.
package anthropic

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Mode names a way of answering.
type Mode int

// The modes.
const (
	Usual      Mode = iota
	Overloaded      // an error comes amid the text
	Busy            // HTTP 529
	Refuses         // the answer ends with a refusal
	Full            // it ends where it may hold no more
)

// fake is the server.
type fake struct {
	*servicetest.Server

	mode Mode
}

// New starts the server.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return NewMode(t, Usual)
}

// NewMode starts a server that answers in another way.
func NewMode(t testing.TB, mode Mode) *servicetest.Server {
	t.Helper()
	f := &fake{mode: mode}
	f.Server = servicetest.New(t, f.serve, servicetest.ThinkFaults()...)
	return f.Server
}

// request holds the members of a client's request. A block has members of all types.
type request struct {
	Model       string          `json:"model"`
	MaxTokens   int             `json:"max_tokens"`
	System      json.RawMessage `json:"system"`
	Messages    []message       `json:"messages"`
	Tools       []tool          `json:"tools"`
	Choice      json.RawMessage `json:"tool_choice"`
	Stream      bool            `json:"stream"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	TopK        *int            `json:"top_k"`
	Stop        []string        `json:"stop_sequences"`
	Metadata    json.RawMessage `json:"metadata"`
	Output      json.RawMessage `json:"output_config"`
	Cache       json.RawMessage `json:"cache_control"`
	Tier        string          `json:"service_tier"`
	Thinking    struct {
		Type    string `json:"type"`
		Budget  int    `json:"budget_tokens"`
		Display string `json:"display"`
	} `json:"thinking"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       json.RawMessage `json:"cache_control"`
	Type        string          `json:"type"`
	Strict      bool            `json:"strict"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	blocks  []block
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUse   string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, fault := f.Take(w, r), f.Fault()
	refuse := func(status int, kind, words string) {
		f.Refuse(w, status, string(servicetest.JSON(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": words}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}).Data),
			"Retry-After", "1", "request-id", "req_011CSHoEeqs5C35K2UUqR7Fy")
	}
	var q request
	switch {
	case !strings.HasSuffix(r.URL.Path, "/v1/messages") || r.Method != http.MethodPost:
		refuse(http.StatusNotFound, "not_found_error", "Not Found")
	case fault == servicetest.WrongKey || r.Header.Get("X-Api-Key") != servicetest.Key:
		refuse(http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	case r.Header.Get("Anthropic-Version") != "2023-06-01":
		refuse(http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
	case fault == servicetest.NoMoney:
		refuse(http.StatusPaymentRequired, "billing_error", "Your credit balance is too low to access the Anthropic API.")
	case fault == servicetest.RateLimited:
		refuse(http.StatusTooManyRequests, "rate_limit_error", "This request would exceed your organization's rate limit.")
	case f.mode == Busy:
		refuse(529, "overloaded_error", "Overloaded")
	default:
		if why := q.read(body); why != "" {
			refuse(http.StatusBadRequest, "invalid_request_error", why)
			return
		}
		if fault == servicetest.WrongModel {
			refuse(http.StatusNotFound, "not_found_error", "model: "+q.Model)
			return
		}
		f.answer(w, r, &q)
	}
}

var names = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)

// read takes a request. It returns what is wrong with it, or "".
func (q *request) read(body []byte) string {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return err.Error() + ": Extra inputs are not permitted"
	}
	switch {
	case q.Model == "" || q.MaxTokens < 1:
		return "max_tokens: Field required"
	case len(q.Messages) == 0 || q.Messages[0].Role != "user":
		return "messages: first message must use the \"user\" role"
	case q.Temperature != nil && (*q.Temperature < 0 || *q.Temperature > 1):
		return "temperature: range: 0..1"
	case q.Thinking.Type == "enabled" && (q.Thinking.Budget < 1024 || q.Thinking.Budget >= q.MaxTokens):
		return "thinking.enabled.budget_tokens: must be at least 1024 and below max_tokens"
	}
	for i, t := range q.Tools {
		if !names.MatchString(t.Name) || !strings.Contains(string(t.Schema), `"object"`) {
			return fmt.Sprintf("tools.%d.input_schema.type: Field required", i)
		}
	}
	var open []string // calls that want their results
	for i := range q.Messages {
		m := &q.Messages[i]
		if why := m.read(i); why != "" {
			return why
		}
		if why := q.follows(i, m, open); why != "" {
			return why
		}
		if i == 0 || m.Role != q.Messages[i-1].Role || m.Role == "user" {
			open = nil
		}
		for _, b := range m.blocks {
			if b.Type == "tool_use" {
				open = append(open, b.ID)
			}
		}
	}
	if len(open) > 0 {
		return "`tool_use` ids were found without `tool_result` blocks immediately after: " + strings.Join(open, ", ")
	}
	return ""
}

// read takes the blocks of a message.
func (m *message) read(i int) string {
	if m.Role != "user" && m.Role != "assistant" {
		return fmt.Sprintf("messages.%d.role: Input should be 'user' or 'assistant'", i)
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		m.blocks = []block{{Type: "text", Text: text}}
	} else if json.Unmarshal(m.Content, &m.blocks) != nil || len(m.blocks) == 0 {
		return fmt.Sprintf("messages.%d.content: Input should be a valid list", i)
	}
	for n, b := range m.blocks {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return "messages: text content blocks must be non-empty"
		case b.Type == "thinking" && (m.Role != "assistant" || b.Signature != sign(b.Thinking)):
			return fmt.Sprintf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, n)
		case b.Type == "tool_use" && (m.Role != "assistant" || b.ID == "" || !names.MatchString(b.Name) || !strings.HasPrefix(string(b.Input), "{")):
			return fmt.Sprintf("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, n)
		}
	}
	return ""
}

// follows says what is wrong with a message after those before, whose calls are open.
func (q *request) follows(i int, m *message, open []string) string {
	wanted := map[string]bool{}
	for _, id := range open {
		wanted[id] = true
	}
	text, thought := false, false
	for _, b := range m.blocks {
		switch b.Type {
		case "text":
			text = true
		case "thinking", "redacted_thinking":
			thought = true
		case "tool_result":
			if !wanted[b.ToolUse] || text {
				return fmt.Sprintf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks, or text before them: %s", i, b.ToolUse)
			}
			delete(wanted, b.ToolUse)
		case "tool_use":
			if q.thinks() && !thought {
				return fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`", i)
			}
		}
	}
	if len(wanted) > 0 && m.Role == "user" {
		return "`tool_use` ids were found without `tool_result` blocks immediately after"
	}
	return ""
}

func (q *request) thinks() bool { return q.Thinking.Type == "enabled" || q.Thinking.Type == "adaptive" }

// sign is the signature of a thought.
func sign(thought string) string { return fmt.Sprintf("sig%08x", crc32.ChecksumIEEE([]byte(thought))) }

// newest returns what the user said last, or the result of a tool.
func (q *request) newest() (words string, told bool) {
	for _, b := range q.Messages[len(q.Messages)-1].blocks {
		switch b.Type {
		case "tool_result":
			told = true
			var text string
			var parts []block
			if json.Unmarshal(b.Content, &text) != nil && json.Unmarshal(b.Content, &parts) == nil {
				for _, p := range parts {
					text += p.Text
				}
			}
			words += text
		case "text":
			words = b.Text
		}
	}
	return words, told
}

// events collects those of an answer, each followed by a ping.
type events struct {
	list  [][]byte
	index int
}

func (e *events) add(kind string, fields map[string]any) {
	fields["type"] = kind
	e.list = append(e.list, servicetest.Event(kind, string(servicetest.JSON(fields).Data)), servicetest.Event("ping", `{"type":"ping"}`))
}

// block adds one with the deltas of a type: its text member has the name of the type.
func (e *events) block(start map[string]any, deltas ...map[string]any) {
	e.add("content_block_start", map[string]any{"index": e.index, "content_block": start})
	for _, d := range deltas {
		e.add("content_block_delta", map[string]any{"index": e.index, "delta": d})
	}
	e.add("content_block_stop", map[string]any{"index": e.index})
	e.index++
}

func deltas(kind, member, text string) (out []map[string]any) {
	for _, p := range servicetest.Thirds(text) {
		out = append(out, map[string]any{"type": kind, member: p})
	}
	return out
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, q *request) {
	e := &events{}
	words, told := q.newest()
	e.add("message_start", map[string]any{"message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": q.Model, "content": []any{}, "stop_reason": nil, "usage": map[string]any{"input_tokens": 25, "cache_read_input_tokens": 5, "output_tokens": 1}}})
	if q.thinks() {
		thought := "The user says: " + words
		e.block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, append(deltas("thinking_delta", "thinking", thought), map[string]any{"type": "signature_delta", "signature": sign(thought)})...)
	}
	reason := "end_turn"
	var tools []servicetest.Tool
	for _, t := range q.Tools {
		tools = append(tools, servicetest.Tool{Name: t.Name, Schema: t.Schema})
	}
	if tools = servicetest.Asked(words, tools); !told && len(tools) > 0 && !strings.Contains(string(q.Choice), `"none"`) {
		reason = "tool_use"
		for i, t := range tools {
			args := []map[string]any(nil)
			if a := servicetest.Arguments(t.Schema); a != "{}" {
				args = append([]map[string]any{{"type": "input_json_delta", "partial_json": ""}}, deltas("input_json_delta", "partial_json", a)...)
			}
			e.block(map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%02d_%08x", i, crc32.ChecksumIEEE([]byte(words))), "name": t.Name, "input": map[string]any{}}, args...)
		}
	} else {
		e.block(map[string]any{"type": "text", "text": ""}, deltas("text_delta", "text", servicetest.Answer(words))...)
	}
	switch f.mode {
	case Overloaded:
		e.list = append(e.list[:len(e.list)-4], servicetest.Event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	case Refuses:
		reason = "refusal"
	case Full:
		reason = "model_context_window_exceeded"
	default:
	}
	if f.mode != Overloaded {
		e.add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 15}})
		e.list = append(e.list, servicetest.Event("message_stop", `{"type":"message_stop"}`))
	}
	if fault := f.Fault(); fault == servicetest.Odd {
		e.list = append([][]byte{e.list[0], servicetest.Event("strange", `{"type":"strange","x":1}`)}, e.list[1:]...)
	} else if fault == servicetest.Cut || fault == servicetest.Closed || fault == servicetest.Huge {
		e.list = append([][]byte{join(e.list[:6])}, e.list[6:]...) // so that there was text
	}
	f.Stream(w, r, f.Fault(), servicetest.Events{List: e.list, Pause: time.Millisecond, Broken: []byte("event: content_block_delta\ndata: {\"type\":\"content_bl\n\n"),
		Filler: servicetest.Event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+servicetest.More+`"}}`)})
}

func join(list [][]byte) (out []byte) {
	for _, b := range list {
		out = append(out, b...)
	}
	return out
}
