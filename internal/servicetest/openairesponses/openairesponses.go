// Package openairesponses is a fake of OpenAI's Responses: events with rising numbers,
// flat tools, and calls that are answered by another id than their item's.
package openairesponses

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
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
	Fails           // the answer ends with response.failed
	Errs            // with an error event
	Incomplete      // with response.incomplete
	Endless         // without an event that ends it
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

type object = map[string]any

// request holds the members of a client's request.
type request struct {
	Model string          `json:"model"`
	Input json.RawMessage `json:"input"`
	Tools []struct {
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
	Choice    json.RawMessage `json:"tool_choice"`
	Stream    bool            `json:"stream"`
	Reasoning struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`

	words string // newest of the user, or the result of tools
	told  bool   // it is the latter
}

// item is one of the input.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Call      string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body, fault := f.Take(w, r), f.Fault()
	refuse := func(status int, kind, code, words string) {
		f.Refuse(w, status, string(servicetest.JSON(object{"error": object{"message": words, "type": kind, "param": nil, "code": code}}).Data), "Retry-After", "1")
	}
	var q request
	switch {
	case !strings.HasSuffix(r.URL.Path, "/responses") || r.Method != http.MethodPost:
		refuse(http.StatusNotFound, "invalid_request_error", "", "Invalid URL")
	case fault == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
		refuse(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided.")
	case fault == servicetest.NoMoney:
		refuse(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case fault == servicetest.RateLimited:
		refuse(http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Rate limit reached.")
	default:
		if why := q.read(body); why != "" {
			refuse(http.StatusBadRequest, "invalid_request_error", "invalid_value", why)
			return
		}
		if fault == servicetest.WrongModel {
			refuse(http.StatusNotFound, "invalid_request_error", "model_not_found", "The model '"+q.Model+"' does not exist.")
			return
		}
		f.answer(w, r, &q)
	}
}

// read takes a request. It returns what is wrong with it, or "".
func (q *request) read(body []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, q) != nil || json.Unmarshal(body, &members) != nil {
		return "We could not parse the JSON body of your request."
	}
	for _, old := range []string{"messages", "max_tokens", "max_completion_tokens", "reasoning_effort", "response_format"} {
		if _, is := members[old]; is {
			return "Unsupported parameter: '" + old + "'."
		}
	}
	for i, t := range q.Tools {
		if t.Type != "function" || t.Name == "" {
			return fmt.Sprintf("Missing required parameter: 'tools[%d].name'.", i)
		}
	}
	var list []item
	if json.Unmarshal(q.Input, &q.words) != nil && json.Unmarshal(q.Input, &list) != nil || q.Model == "" {
		return "Missing required parameter: 'input'."
	}
	open := map[string]bool{} // calls that want their results
	for i, it := range list {
		if why := q.take(it, open); why != "" {
			return fmt.Sprintf("input[%d]: %s", i, why)
		}
	}
	for id := range open {
		return "No tool output found for function call " + id + "."
	}
	return ""
}

// take takes an item of the input.
func (q *request) take(it item, open map[string]bool) string {
	switch {
	case it.Type == "function_call" && (it.Call == "" || it.Name == "" || it.Arguments == nil):
		return "Missing required parameter of a call."
	case it.Type == "function_call":
		open[it.Call] = true
		return ""
	case it.Type == "function_call_output" && !open[it.Call]:
		return "No tool call found for function call output with call_id " + it.Call + "."
	case it.Type == "function_call_output":
		delete(open, it.Call)
		q.words, q.told = text(it.Output), true
		return ""
	case it.Type == "reasoning":
		return ""
	case it.Type != "" && it.Type != "message" || !strings.Contains(" user assistant system developer ", " "+it.Role+" "):
		return "Invalid value: '" + it.Type + it.Role + "'."
	}
	var parts []struct{ Type string }
	_ = json.Unmarshal(it.Content, &parts) // a text has none
	for _, p := range parts {
		want := "input_"
		if it.Role == "assistant" {
			want = "output_text refusal"
		}
		if !strings.HasPrefix(p.Type, want) && (it.Role != "assistant" || !strings.Contains(want, p.Type)) {
			return "Invalid value: '" + p.Type + "'."
		}
	}
	if it.Role == "user" {
		q.words, q.told = text(it.Content), false
	}
	return ""
}

// text is content as a text, whether it is one or parts of one.
func text(raw json.RawMessage) (out string) {
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &out) == nil || json.Unmarshal(raw, &parts) != nil {
		return out
	}
	for _, p := range parts {
		out += p.Text
	}
	return out
}

// events collects those of an answer, each with its number.
type events struct {
	list [][]byte
}

func (e *events) add(kind string, o object) {
	o["type"], o["sequence_number"] = kind, len(e.list)
	e.list = append(e.list, servicetest.Event(kind, string(servicetest.JSON(o).Data)))
}

// thirds adds a text in pieces.
func (e *events) thirds(kind string, o object, text string) {
	for _, p := range servicetest.Thirds(text) {
		next := object{"delta": p, "obfuscation": "xyz"}
		maps.Copy(next, o)
		e.add(kind, next)
	}
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, q *request) {
	e := &events{}
	response := object{"id": "resp_1", "object": "response", "status": "in_progress", "model": q.Model, "output": []any{}}
	e.add("response.created", object{"response": response})
	e.add("response.in_progress", object{"response": response})
	at := 0
	if q.Reasoning.Effort != "" && q.Reasoning.Effort != "none" {
		thought := object{"id": "rs_1", "type": "reasoning", "summary": []any{}}
		e.add("response.output_item.added", object{"output_index": at, "item": thought})
		if q.Reasoning.Summary != "" {
			e.thirds("response.reasoning_summary_text.delta", object{"item_id": "rs_1", "output_index": at, "summary_index": 0}, "The user speaks.")
		}
		thought["encrypted_content"] = "gAAAA"
		e.add("response.output_item.done", object{"output_index": at, "item": thought})
		at++
	}
	var tools []servicetest.Tool
	for _, t := range q.Tools {
		tools = append(tools, servicetest.Tool{Name: t.Name, Schema: t.Parameters})
	}
	if tools = servicetest.Asked(q.words, tools); len(tools) > 0 && !q.told && string(q.Choice) != `"none"` {
		e.calls(tools, at)
	} else {
		e.text(servicetest.Answer(q.words), at)
	}
	f.end(e, q)
	filler := &events{}
	filler.add("response.output_text.delta", object{"item_id": "msg_1", "output_index": at, "content_index": 0, "delta": servicetest.More})
	if fault := f.Fault(); fault == servicetest.Cut || fault == servicetest.Closed || fault == servicetest.Huge {
		var first []byte
		for _, b := range e.list[:5] {
			first = append(first, b...)
		}
		e.list = append([][]byte{first}, e.list[5:]...) // so that there was text
	}
	f.Stream(w, r, f.Fault(), servicetest.Events{List: e.list, Pause: time.Millisecond, Broken: []byte("event: response.created\ndata: {\"type\":\"resp\n\n"), Filler: filler.list[0]})
}

// text adds a text.
func (e *events) text(text string, at int) {
	it := object{"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []any{}}
	e.add("response.output_item.added", object{"output_index": at, "item": it})
	about := object{"item_id": "msg_1", "output_index": at, "content_index": 0}
	e.add("response.content_part.added", object{"item_id": "msg_1", "output_index": at, "content_index": 0, "part": object{"type": "output_text", "text": ""}})
	e.thirds("response.output_text.delta", about, text)
	e.add("response.output_text.done", object{"item_id": "msg_1", "output_index": at, "content_index": 0, "text": text})
	it["status"], it["content"] = "completed", []object{{"type": "output_text", "text": text}}
	e.add("response.output_item.done", object{"output_index": at, "item": it})
}

// calls adds calls whose arguments are interleaved.
func (e *events) calls(tools []servicetest.Tool, at int) {
	items := make([]object, len(tools))
	for i, t := range tools {
		items[i] = object{"id": fmt.Sprintf("fc_%d", i), "type": "function_call", "status": "in_progress", "call_id": fmt.Sprintf("call_%d", i), "name": t.Name, "arguments": ""}
		e.add("response.output_item.added", object{"output_index": at + i, "item": items[i]})
	}
	for n := range 3 {
		for i, t := range tools {
			e.add("response.function_call_arguments.delta", object{"item_id": items[i]["id"], "output_index": at + i, "delta": servicetest.Thirds(servicetest.Arguments(t.Schema))[n]})
		}
	}
	for i, t := range tools {
		args := servicetest.Arguments(t.Schema)
		e.add("response.function_call_arguments.done", object{"item_id": items[i]["id"], "output_index": at + i, "arguments": args})
		items[i]["status"], items[i]["arguments"] = "completed", args
		e.add("response.output_item.done", object{"output_index": at + i, "item": items[i]})
	}
}

// end ends the answer.
func (f *fake) end(e *events, q *request) {
	response := object{"id": "resp_1", "object": "response", "status": "completed", "model": q.Model, "usage": object{"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}}
	switch f.mode {
	case Fails:
		response["status"], response["error"] = "failed", object{"code": "server_error", "message": "The model failed."}
		e.add("response.failed", object{"response": response})
	case Errs:
		e.add("error", object{"code": "server_error", "message": "The server had an error.", "param": nil})
	case Incomplete:
		response["status"], response["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
		e.add("response.incomplete", object{"response": response})
	case Endless:
	default:
		e.add("response.completed", object{"response": response})
	}
}
