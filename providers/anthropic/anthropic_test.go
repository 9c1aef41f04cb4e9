package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

const answered = `event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

event: ping
data: {"type":"ping"}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hello"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"a_new_delta","text":"no"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"lamp","input":{}}}

data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"on\":"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"true}"}}

data: {"type":"content_block_stop","index":2}

data: {"type":"content_block_stop","index":3}

data: {"type":"an_unknown_event"}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}

data: {"type":"message_stop"}

`

func TestAnswer(t *testing.T) {
	s := serve(t, answered)
	got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi())
	if err != nil || got.Text != "Hello" || got.Thought != "hm" || len(got.Calls) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Calls[0].ID != "toolu_1" || got.Calls[0].Arguments != `{"on":true}` || got.Calls[1].Arguments != "{}" {
		t.Errorf("calls %+v", got.Calls)
	}
	if got.Usage != (providers.Usage{Prompt: 14, Cached: 4, Completion: 7}) {
		t.Errorf("usage %+v", got.Usage)
	}
	if echo := got.Echo.For(generation.Owner("x", "claude-haiku-4-5")); echo != `[{"signature":"sig","thinking":"hm","type":"thinking"}]` {
		t.Errorf("echo %s", echo)
	}
	if s.Header.Get("X-Api-Key") != "sk-secret-key" || s.Header.Get("Anthropic-Version") != "2023-06-01" || s.Path != "/v1/messages" {
		t.Errorf("%s %v", s.Path, s.Header)
	}
}

func TestRequest(t *testing.T) {
	s := serve(t, answered)
	l := s.model(t, func(s *service.Section) { s.MaxTokens, s.Extra = 99, map[string]any{"top_k": 3} })
	echo := providers.NewEcho(generation.Owner("x", "claude-haiku-4-5"), `[{"type":"thinking","thinking":"hm","signature":"sig"}]`)
	req := providertest.Dialogue(echo, providers.Echo{})
	req.NoTools = true
	if _, err := providertest.ReadAnswer(t, l, req); err != nil {
		t.Fatal(err)
	}
	second := s.Body["messages"].([]any)[1].(map[string]any)["content"].([]any)[3].(map[string]any)["id"].(string)
	providertest.WantJSON(t, s.Body, `{"model":"claude-haiku-4-5","max_tokens":99,"stream":true,"system":"be kind","thinking":{"type":"disabled"},"cache_control":{"type":"ephemeral"},"top_k":3,
	 "tool_choice":{"type":"none"},"tools":[{"name":"lamp","description":"d","input_schema":{"type":"object","properties":{}}},{"name":"now","input_schema":{"type":"object","properties":{}}}],
	 "messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cG5n"}},{"type":"text","text":"look"}]},
	  {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"I see"},
	   {"type":"tool_use","id":"c1","name":"lamp","input":{"on":true}},{"type":"tool_use","id":"`+second+`","name":"now","input":{}}]},
	  {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done"},{"type":"tool_result","tool_use_id":"`+second+`","content":"9:00"},{"type":"text","text":"and?"}]}]}`)
	if _, err := providertest.ReadAnswer(t, l, providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleAssistant, Content: "I begin", Echo: providers.NewEcho("another", `[{"type":"thinking"}]`)}}}); err != nil {
		t.Fatal(err)
	}
	providertest.WantJSON(t, s.Body["messages"], `[{"role":"user","content":[{"type":"text","text":"…"}]},{"role":"assistant","content":[{"type":"text","text":"I begin"}]}]`)
}

func TestRefusals(t *testing.T) {
	s := serve(t, "")
	for _, c := range []struct {
		status int
		reply  string
		kind   providers.Kind
		part   string
	}{
		{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key sk-secret-key"},"request_id":"r"}`, providers.Unauthorized, "invalid x-api-key ***"},
		{402, `{"type":"error","error":{"type":"billing_error","message":"pay"}}`, providers.NoCredit, "pay"},
		{403, `{"type":"error","error":{"type":"permission_error","message":"no"}}`, providers.Unauthorized, "no"},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"long"}}`, providers.BadRequest, "long"},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, providers.RateLimited, "slow"},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, providers.Unavailable, "busy"},
		{200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", providers.Unavailable, "busy"},
		{200, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"}}\n\n", providers.BadRequest, "refused"},
		{200, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n", providers.Unavailable, "empty"},
		{200, "data: {\"type\":\"ping\"}\n\n", providers.Unavailable, "ended before"},
		{200, "data: {\"type\"\n\n", providers.Unavailable, "not the JSON"},
	} {
		s.refused(t, c.status, c.reply, c.kind, c.part)
	}
}

// A switch that the server refuses is left out.
func TestAdapts(t *testing.T) {
	s := serve(t, `{"type":"error","error":{"type":"invalid_request_error","message":"thinking: Extra inputs are not permitted"}}`)
	s.Status = 400
	l := s.model(t, nil)
	_, _ = providertest.ReadAnswer(t, l, providertest.Hi())
	s.Status, s.Reply = 200, answered
	if _, err := providertest.ReadAnswer(t, l, providertest.Hi()); err != nil || s.Body["thinking"] != nil || s.Body["cache_control"] == nil {
		t.Errorf("%v, %v", s.Body, err)
	}
}

func TestSuite(t *testing.T) {
	l := serve(t, answered).model(t, nil)
	providertest.TestLLM(t, func(*testing.T) providers.LLM { return l }, providertest.Hi())
	if err := l.Warm(t.Context()); err != nil || !l.Capabilities().Vision {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use"}}`, `{"type":"content_block_stop","index":1}`)
	f.Add(`{"type":"error"}`, `{"type":"message_delta","delta":{"stop_reason":"refusal"}}`)
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

// Others who speak this protocol give a call's arguments at once, and name events only beside them.
func TestImitators(t *testing.T) {
	s := serve(t, "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"lamp\",\"input\":{\"on\":true}}}\n\n"+
		"event: content_block_stop\ndata: {\"index\":0}\n\nevent: message_delta\ndata: {\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n")
	if got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi()); err != nil || len(got.Calls) != 1 || got.Calls[0].Arguments != `{"on":true}` {
		t.Errorf("%+v, %v", got, err)
	}
	q := providertest.Hi()
	q.Messages = append(q.Messages, providers.Message{Role: providers.RoleAssistant, Content: " \n"}, providers.Message{Role: providers.RoleUser, Content: " "})
	_, _ = providertest.ReadAnswer(t, s.model(t, func(s *service.Section) { s.BaseURL += "/v1/" }), q) // the path is the same
	if raw := s.Body["messages"].([]any); len(raw) != 1 || !strings.HasSuffix(fmt.Sprint(raw[0]), "[text:… type:text]] role:user]") {
		t.Errorf("blank texts: %v", raw)
	}
}
