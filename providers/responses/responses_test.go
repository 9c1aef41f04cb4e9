package responses

import (
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

const answered = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r","error":null}}

data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}

data: {"type":"response.reasoning_summary_text.delta","delta":"hm"}

data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}}

data: {"type":"response.output_text.delta","delta":"Hello","obfuscation":"x"}

data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"call_1","name":"lamp","arguments":""}}

data: {"type":"response.function_call_arguments.delta","item_id":"fc","delta":"{}"}

data: {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"call_1","name":"lamp","arguments":"{\"on\":true}"}}

event: response.completed
data: {"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens_details":{"reasoning_tokens":3}}}}

`

func TestAnswer(t *testing.T) {
	s := serve(t, answered)
	got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi())
	if err != nil || got.Text != "Hello" || got.Thought != "hm" || len(got.Calls) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := got.Calls[0]; c.ID != "call_1" || c.Arguments != `{"on":true}` || got.Usage != (providers.Usage{Prompt: 9, Cached: 2, Completion: 5, Reasoning: 3}) {
		t.Errorf("%+v, %+v", c, got.Usage)
	}
	if echo := got.Echo.For(generation.Owner("x", "gpt-5.4-nano")); echo != `[{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}]` {
		t.Errorf("echo %s", echo)
	}
	providertest.WantJSON(t, s.Body, `{"model":"gpt-5.4-nano","stream":true,"store":false,"stream_options":{"include_obfuscation":false},"reasoning":{"effort":"none"},
	 "include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"hi"}]}`)
	if s.Path != "/v1/responses" || s.Header.Get("Authorization") != "Bearer sk-secret-key" {
		t.Errorf("%s %v", s.Path, s.Header)
	}
}

func TestRequest(t *testing.T) {
	s := serve(t, answered)
	l := s.model(t, func(s *service.Section) {
		s.MaxTokens, s.Models = 99, map[service.Role]string{service.LLM: "gpt-4.1-mini"}
	})
	req := providertest.Dialogue(providers.NewEcho(generation.Owner("x", "gpt-4.1-mini"), `[{"type":"reasoning","id":"rs"}]`), providers.Echo{})
	req.NoTools = true
	if _, err := providertest.ReadAnswer(t, l, req); err != nil {
		t.Fatal(err)
	}
	second := s.Body["input"].([]any)[4].(map[string]any)["call_id"].(string)
	providertest.WantJSON(t, s.Body, `{"model":"gpt-4.1-mini","stream":true,"store":false,"stream_options":{"include_obfuscation":false},"instructions":"be kind","max_output_tokens":99,"tool_choice":"none",
	 "tools":[{"type":"function","name":"lamp","description":"d","parameters":{"type":"object","properties":{}},"strict":false},{"type":"function","name":"now","parameters":{"type":"object","properties":{}},"strict":false}],
	 "input":[{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]},
	  {"type":"reasoning","id":"rs"},{"role":"assistant","content":"I see"},
	  {"type":"function_call","call_id":"c1","name":"lamp","arguments":"{\"on\":true}"},{"type":"function_call","call_id":"`+second+`","name":"now","arguments":"{}"},
	  {"type":"function_call_output","call_id":"c1","output":"done"},{"type":"function_call_output","call_id":"`+second+`","output":"9:00"},{"role":"user","content":"and?"}]}`)
}

func TestRefusals(t *testing.T) {
	s := serve(t, "")
	for _, c := range []struct {
		status int
		reply  string
		kind   providers.Kind
		part   string
	}{
		{401, `{"error":{"code":"invalid_api_key","message":"wrong sk-secret-key"}}`, providers.Unauthorized, "wrong ***"},
		{200, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"sorry\"}}}\n\n", providers.Unavailable, "sorry"},
		{200, "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}\n\n", providers.RateLimited, "slow"},
		{200, "data: {\"type\":\"error\",\"error\":{\"code\":\"insufficient_quota\",\"message\":\"pay\"}}\n\n", providers.NoCredit, "pay"},
		{200, "data: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"content_filter\"}}}\n\n", providers.BadRequest, "filter"},
		{200, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n", providers.Unavailable, "ended before"},
		{200, "data: {\"type\":\"response.completed\"}\n\n", providers.Unavailable, "empty"},
	} {
		s.refused(t, c.status, c.reply, c.kind, c.part)
	}
}

// Words before a limit count.
func TestIncomplete(t *testing.T) {
	s := serve(t, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\ndata: {\"type\":\"response.incomplete\",\"response\":{\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n")
	if got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi()); err != nil || got.Text != "a" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSuite(t *testing.T) {
	l := serve(t, answered).model(t, func(s *service.Section) { s.Vision = true })
	providertest.TestLLM(t, func(*testing.T) providers.LLM { return l }, providertest.Hi())
	if err := l.Warm(t.Context()); err != nil || !l.Capabilities().Vision {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"response.output_item.done","item":{"type":"function_call"}}`, `{"type":"response.failed","response":{"error":{}}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		a := &answer{owner: "x"}
		give := func(d providers.Delta) {
			for _, c := range d.ToolCalls {
				if c.ID == "" || c.Name == "" {
					t.Errorf("%+v", c)
				}
			}
		}
		for _, raw := range []string{first, second} {
			if _, err := a.Event(sse.Event{Data: []byte(raw)}, give); err != nil {
				return
			}
		}
		_ = a.End(give)
	})
}

// Events that are not known may hold anything; others than OpenAI name them beside their data, number their errors and
// leave thoughts in the text.
func TestImitators(t *testing.T) {
	s := serve(t, "event: response.mcp_call_arguments.delta\ndata: {\"type\":\"response.mcp_call_arguments.delta\",\"delta\":{\"a\":1},\"item\":7}\n\n"+
		"event: response.output_text.delta\ndata: {\"delta\":\"<think>hm</think>Yes\"}\n\ndata: {\"type\":\"response.completed\"}\n\ndata: [DONE]\n\n")
	if got, err := providertest.ReadAnswer(t, s.model(t, func(s *service.Section) { s.BaseURL += "/responses" }), providertest.Hi()); err != nil || got.Text != "Yes" || got.Thought != "hm" {
		t.Errorf("%+v, %v", got, err)
	}
	s.refused(t, 200, "data: {\"type\":\"error\",\"code\":429,\"message\":\"slow down\"}\n\n", providers.Unavailable, "slow down")
}
