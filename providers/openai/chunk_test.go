package openai

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// TestDialects reads what servers really send.
func TestDialects(t *testing.T) {
	delta, finish := openaitest.Delta, openaitest.Finish
	call := func(id, name, args string) providers.ToolCall {
		return providers.ToolCall{ID: id, Name: name, Arguments: args}
	}
	s := newServer(t)
	l := newLLM(t, options(t, s))
	for _, c := range []struct {
		name   string
		events []string
		want   said
		usage  providers.Usage
		whole  string // the answer, if it is no stream
	}{
		{
			name: "not streamed", whole: `{
 "choices": [{"index": 0, "message": {"role": "assistant", "content": "<think>hm</think>\n\nSure.", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}, {"id": "2", "type": "function", "function": {"name": "b", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
 "usage": {"prompt_tokens": 9, "completion_tokens": 2}
}`, want: said{text: "Sure.", thought: "hm", calls: []providers.ToolCall{call("1", "a", "{}"), call("2", "b", "{}")}}, usage: providers.Usage{Prompt: 9, Completion: 2},
		},
		{name: "not streamed, without a reason to end", whole: `{"choices":[{"message":{"content":"a"}}]}`, want: said{text: "a"}},
		{name: "a list of parts", events: []string{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hello"}]}`), finish("stop")}, want: said{text: "Hello", thought: "hm"}},
		{name: "costs of another shape", events: []string{delta(`{"content":"Hello"}`), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":"many","prompt_tokens_details":[]}}`, finish("stop")}, want: said{text: "Hello"}, usage: providers.Usage{Prompt: 9}},
		{name: "thoughts and calls in the text", events: []string{delta(`{"content":"</thi"}`), delta(`{"content":"nk>\n\nHello<tool"}`), delta(`{"content":"_call>nonsense</tool_call>"}`), finish("stop")}, want: said{text: "Hello"}},
		{name: "a refusal", events: []string{delta(`{"content":null,"refusal":"I cannot"}`), finish("stop")}, want: said{text: "I cannot"}},
		{name: "stop with calls", events: []string{delta(`{"tool_calls":[{"index":0,"id":"1","function":{"name":"a","arguments":"{}"}}]}`), finish("stop")}, want: said{calls: []providers.ToolCall{call("1", "a", "{}")}}},
		{
			name: "an empty id later", events: []string{
				delta(`{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"a","arguments":""}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":"{\"x\":"}}]}`),
				delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":"1}"}}]}`), finish("tool_calls"),
			}, want: said{calls: []providers.ToolCall{call("1", "a", `{"x":1}`)}},
		},
		{
			name: "whole calls of one index", events: []string{
				delta(`{"tool_calls":[{"index":0,"id":"","function":{"name":"a","arguments":"{}"}},{"index":0,"id":"","function":{"name":"a","arguments":"{\"x\":1}"}}]}`), finish("stop"),
			}, want: said{calls: []providers.ToolCall{call("", "a", "{}"), call("", "a", `{"x":1}`)}},
		},
		{
			name: "cumulative details", events: []string{
				delta(`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"one"}]}`), delta(`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"one two"}]}`),
				delta(`{"content":"a"}`), finish("stop"),
			}, want: said{text: "a", thought: "one two"},
		},
		{
			name: "details beside reasoning", events: []string{delta(`{"reasoning":"one","reasoning_details":[{"type":"reasoning.text","text":"one"}]}`), delta(`{"content":"a"}`), finish("stop")},
			want: said{text: "a", thought: "one"},
		},
		{name: "all said again at the end", events: []string{delta(`{"content":"a"}`), `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"a"},"delta":{}}],"base_resp":{"status_code":0,"status_msg":""}}`}, want: said{text: "a"}},
		{name: "a filter after words", events: []string{delta(`{"content":"a"}`), finish("sensitive")}, want: said{text: "a"}},
		{name: "other ends", events: []string{delta(`{"content":"a"}`), finish("model_context_window_exceeded")}, want: said{text: "a"}},
		{
			name: "usage after the end", events: []string{delta(`{"content":"a"}`), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}`},
			want: said{text: "a"}, usage: providers.Usage{Prompt: 9, Cached: 4, Completion: 5, Reasoning: 2},
		},
		{
			name: "usage that grows", events: []string{`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":3}}`},
			want: said{text: "a"}, usage: providers.Usage{Prompt: 9, Cached: 3, Completion: 2},
		},
		{
			name: "usage in the choice", events: []string{delta(`{"content":"a"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"cached_tokens":1}}]}`},
			want: said{text: "a"}, usage: providers.Usage{Prompt: 9, Cached: 1, Completion: 2},
		},
		{
			name: "usage of Groq", events: []string{delta(`{"content":"a"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":2}}}`},
			want: said{text: "a"}, usage: providers.Usage{Prompt: 7, Completion: 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply := openaitest.Events(c.events...).Then(openaitest.Done())
			if c.whole != "" {
				reply = openaitest.JSON(200, c.whole)
			}
			s.Reply(openaitest.Chat, reply)
			var got said
			var usage providers.Usage
			for d, err := range l.Generate(t.Context(), ask) {
				if err != nil {
					t.Fatal(err)
				}
				if usage != (providers.Usage{}) {
					t.Error("something follows the usage")
				}
				got.text, got.thought, got.calls, usage = got.text+d.Text, got.thought+d.Thought, append(got.calls, d.ToolCalls...), d.Usage
			}
			for i := range got.calls {
				if c.want.calls[i].ID == "" {
					got.calls[i].ID = ""
				}
			}
			if !reflect.DeepEqual(got, c.want) || usage != c.usage {
				t.Errorf("got %+v, %+v\nwant %+v, %+v", got, usage, c.want, c.usage)
			}
		})
	}
}

// TestRefusalsInside are failures that come with status 200.
func TestRefusalsInside(t *testing.T) {
	s := newServer(t)
	l := newLLM(t, options(t, s))
	for _, c := range []struct {
		event string
		kind  providers.Kind
		part  string
	}{
		{`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, providers.NoCredit, "insufficient balance"},
		{`{"base_resp":{"status_code":1002,"status_msg":"slow down"}}`, providers.RateLimited, "slow down"},
		{`[{"error":{"code":429,"message":"exhausted","status":"RESOURCE_EXHAUSTED"}}]`, providers.RateLimited, "exhausted"},
		{`{"error":{"code":502,"message":"upstream down"},"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`, providers.Unavailable, "upstream down"},
		{`{"code":"invalid_api_key","error":"no such key"}`, providers.Unauthorized, "no such key"},
		{`{"code":20012,"message":"model does not exist","data":null}`, providers.Unavailable, "does not exist"},
		{`{"error":{"code":"1301","message":"sensitive words"}}`, providers.BadRequest, "sensitive words"},
		{`{"error":{"code":"data_inspection_failed","message":"inspection"}}`, providers.BadRequest, "inspection"},
		{`{"error":{"code":"Arrearage","message":"pay"}}`, providers.NoCredit, "pay"},
		{openaitest.Finish("insufficient_system_resource"), providers.Unavailable, "insufficient_system_resource"},
		{openaitest.Finish("content_filter"), providers.BadRequest, "refused to answer"},
	} {
		s.Reply(openaitest.Chat, openaitest.Events(c.event).Then(openaitest.Done()))
		_, err := generate(t.Context(), l, ask)
		wantError(t, err, c.kind, c.part)
	}
}

// TestRefusedKeys: a key that a server refuses is left out, and stays out.
func TestRefusedKeys(t *testing.T) {
	for _, c := range []struct {
		name, kind, model string
		refuses           []string // the words for the requests, until one is taken
		want              func(body map[string]any) bool
	}{
		{"a switch", "siliconflow", "", []string{`{"code":20015,"message":"current model does not support parameter enable_thinking"}`}, func(b map[string]any) bool { return b["enable_thinking"] == nil }},
		{"an effort, then another", "openai", "gpt-5.4-nano", []string{
			`{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'minimal', 'low'.","param":"reasoning_effort"}}`,
			`{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'minimal'. Supported values are: 'low', 'high'."}}`,
		}, func(b map[string]any) bool { return b["reasoning_effort"] == "low" }},
		{"an effort at all", "ollama-openai", "", []string{`{"error":{"message":"reasoning_effort is unknown"}}`}, func(b map[string]any) bool { return b["reasoning_effort"] == nil }},
		{"the limit's name", "deepseek", "", []string{`{"error":{"message":"'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}`}, func(b map[string]any) bool { return b["max_tokens"] == nil && b["max_completion_tokens"] == 9.0 }},
		{"missing reasoning", "deepseek", "", []string{`{"error":{"message":"Missing reasoning_content field in the assistant message"}}`}, func(b map[string]any) bool {
			return object(list(b["messages"])[1])["reasoning_content"] == ""
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			o := options(t, s)
			v, _ := VendorOf(c.kind)
			o.Quirks, o.MaxTokens, o.Model = v.Quirks, 9, v.Models[0]
			if c.model != "" {
				o.Model = c.model
			}
			n := 0
			s.Handle(openaitest.Chat, func(*openaitest.Request) openaitest.Reply {
				if n++; n <= len(c.refuses) {
					return openaitest.JSON(http.StatusBadRequest, c.refuses[n-1])
				}
				return openaitest.Text("ok")
			})
			l := newLLM(t, o)
			req := providers.LLMRequest{Messages: []providers.Message{ask.Messages[0], {Role: providers.RoleAssistant, Content: "x"}, ask.Messages[0]}}
			for range 2 {
				if _, err := generate(t.Context(), l, req); err != nil {
					t.Fatal(err)
				}
			}
			if n != len(c.refuses)+2 {
				t.Errorf("asked %d times", n)
			}
			if body := s.Requests(openaitest.Chat)[n-1].JSON(); !c.want(body) {
				t.Errorf("the last request: %v", body)
			}
		})
	}
}

// A key that the user has set is not taken out: he sees what is wrong with it.
func TestOwnKeyStays(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	o.Extra = map[string]any{"enable_thinking": true}
	s.Reply(openaitest.Chat, openaitest.JSON(http.StatusBadRequest, `{"error":{"message":"enable_thinking is unknown"}}`))
	_, err := generate(t.Context(), newLLM(t, o), ask)
	wantError(t, err, providers.BadRequest, "enable_thinking is unknown")
	if n := len(s.Requests(openaitest.Chat)); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// What a filter says of a status is kept, whatever shape it has.
func TestRefusalsByStatus(t *testing.T) {
	s := newServer(t)
	l := newLLM(t, options(t, s))
	for _, c := range []struct {
		status int
		body   string
		kind   providers.Kind
		code   string
	}{
		{403, `{"error":{"code":"ModelNotOpen","message":"open it"}}`, providers.BadRequest, "ModelNotOpen"},
		{403, `{"error":{"code":"AccountOverdueError","message":"pay"}}`, providers.NoCredit, "AccountOverdueError"},
		{429, `{"error":{"code":"insufficient_quota","message":"pay"}}`, providers.NoCredit, "insufficient_quota"},
		{400, `{"error":{"code":"Arrearage","message":"pay"},"request_id":"r1"}`, providers.NoCredit, "Arrearage"},
		{400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, providers.Unauthorized, "400"},
		{400, `{"code":"RateLimitExceeded","message":"slow"}`, providers.RateLimited, "RateLimitExceeded"},
		{413, `{"error":{"message":"too large"}}`, providers.BadRequest, ""},
		{400, `{"error":{"message":"broken call","code":"tool_use_failed","failed_generation":"x"}}`, providers.Unavailable, "tool_use_failed"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, providers.Unavailable, "overloaded_error"},
		{400, `"a bare text"`, providers.BadRequest, ""},
	} {
		s.Reply(openaitest.Chat, openaitest.JSON(c.status, c.body))
		_, err := generate(t.Context(), l, ask)
		wantError(t, err, c.kind, "")
		refused, ok := errors.AsType[*transport.Refusal](err)
		if !ok || refused.Code != c.code || strings.Contains(refused.Text, "{") {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}

// TestThoughtWithoutBeginning: servers that render R1's template give the end of its thought only.
func TestThoughtWithoutBeginning(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	o.Model = "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"
	l := newLLM(t, o)
	for answer, want := range map[string]said{
		`{"content":"The user greets.</think>\n\nHello"}`:      {text: "Hello", thought: "The user greets."},
		`{"reasoning_content":"It greets.","content":"Hello"}`: {text: "Hello", thought: "It greets."},
	} {
		s.Reply(openaitest.Chat, openaitest.Events(openaitest.Delta(answer), openaitest.Finish("stop")).Then(openaitest.Done()))
		got, err := generate(t.Context(), l, ask)
		if err != nil || got.text != want.text || got.thought != want.thought {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
}
