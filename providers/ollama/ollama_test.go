package ollama

import (
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

const answered = `{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}
{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"lamp","arguments":{"on":true}}},{"id":"c7","function":{"name":"now","arguments":null}}]},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":5}
`

func TestAnswer(t *testing.T) {
	s := serve(t, answered)
	got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi())
	if err != nil || got.Text != "Hello" || got.Thought != "hm" || len(got.Calls) != 2 || got.Usage != (providers.Usage{Prompt: 9, Completion: 5}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := got.Calls[0]; c.ID == "" || c.Arguments != `{"on":true}` || got.Calls[1].ID != "c7" || got.Calls[1].Arguments != "{}" {
		t.Errorf("%+v", got.Calls)
	}
	providertest.WantJSON(t, s.Body, `{"model":"qwen3:4b","stream":true,"think":false,"keep_alive":"30m","options":{"num_ctx":8192},"messages":[{"role":"user","content":"hi"}]}`)
	if s.Path != "/api/chat" {
		t.Error(s.Path)
	}
}

func TestRequest(t *testing.T) {
	s := serve(t, answered)
	l := s.model(t, func(c *service.Section) {
		c.BaseURL, c.MaxTokens, c.Settings = s.URL+"/v1/", 99, map[string]any{"keep_alive": "-1", "num_ctx": 4096, "think": "low"}
		c.Extra = map[string]any{"format": "json"}
	})
	req := providertest.Dialogue(providers.Echo{}, providers.Echo{})
	if _, err := providertest.ReadAnswer(t, l, req); err != nil {
		t.Fatal(err)
	}
	providertest.WantJSON(t, s.Body, `{"model":"qwen3:4b","stream":true,"think":"low","keep_alive":"-1","format":"json","options":{"num_ctx":4096,"num_predict":99},
	 "tools":[{"type":"function","function":{"name":"lamp","description":"d","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"now","description":"","parameters":{"type":"object","properties":{}}}}],
	 "messages":[{"role":"system","content":"be kind"},{"role":"user","content":"look","images":["cG5n"]},
	  {"role":"assistant","content":"I see","tool_calls":[{"id":"c1","function":{"name":"lamp","arguments":{"on":true}}},{"id":"c 2","function":{"name":"now","arguments":{}}}]},
	  {"role":"tool","content":"done","tool_name":"lamp","tool_call_id":"c1"},{"role":"tool","content":"9:00","tool_name":"now","tool_call_id":"c 2"},{"role":"user","content":"and?"}]}`)
	req.NoTools = true
	if _, err := providertest.ReadAnswer(t, l, req); err != nil || s.Body["tools"] != nil {
		t.Errorf("tools that must not be called: %v, %v", s.Body["tools"], err)
	}
}

func TestRefusals(t *testing.T) {
	s := serve(t, "")
	for _, c := range []struct {
		status int
		reply  string
		kind   providers.Kind
		part   string
	}{
		{404, `{"error":"model 'm' not found"}`, providers.BadRequest, "not found"},
		{500, `{"error":"out of memory"}`, providers.Unavailable, "out of memory"},
		{200, `{"message":{"content":"a"},"done":false}` + "\n" + `{"error":"the runner has crashed"}` + "\n", providers.Unavailable, "crashed"},
		{200, `{"message":{"content":"a"},"done":false}` + "\n", providers.Unavailable, "ended before"},
		{200, `{"message":{"content":""},"done":true,"done_reason":"load"}` + "\n", providers.Unavailable, "loaded"},
		{200, "<html>\n", providers.Unavailable, "not the JSON"},
	} {
		s.refused(t, c.status, c.reply, c.kind, c.part)
	}
}

// A model that cannot think is not told not to.
func TestAdapts(t *testing.T) {
	s := serve(t, `{"error":"\"m\" does not support thinking"}`)
	s.Status = 400
	l := s.model(t, nil)
	_, _ = providertest.ReadAnswer(t, l, providertest.Hi())
	s.Status, s.Reply = 200, answered
	if _, err := providertest.ReadAnswer(t, l, providertest.Hi()); err != nil {
		t.Error(err)
	}
	if _, sent := s.Body["think"]; sent {
		t.Errorf("%v", s.Body)
	}
}

// The model is loaded before it is needed, and not again while it is used.
func TestWarm(t *testing.T) {
	s := serve(t, `{"done":true,"done_reason":"load"}`)
	l := s.model(t, nil)
	for n := range 2 {
		s.Body = nil
		if err := l.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if loads := s.Body != nil; loads != (n == 0) {
			t.Errorf("call %d asks: %v", n, loads)
		}
		if n == 0 {
			providertest.WantJSON(t, s.Body, `{"model":"qwen3:4b","messages":[],"keep_alive":"30m","options":{"num_ctx":8192}}`)
		}
	}
	s.Status, s.Reply = 404, `{"error":"model 'm' not found"}`
	if err := s.model(t, nil).Warm(t.Context()); err == nil {
		t.Error("a model that is not there is loaded")
	}
}

func TestThink(t *testing.T) {
	for model, want := range map[string]any{"qwen3:4b": false, "gpt-oss:20b": "low"} {
		if got := think(service.Section{}, model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
	if think(service.Section{Settings: map[string]any{"think": true}}, "m") != true || think(service.Section{Settings: map[string]any{"think": "true"}}, "m") != true {
		t.Error("a setting is not taken")
	}
}

func TestSuite(t *testing.T) {
	l := serve(t, answered).model(t, func(s *service.Section) { s.Vision = true })
	providertest.TestLLM(t, func(*testing.T) providers.LLM { return l }, providertest.Hi())
	if !l.Capabilities().Vision {
		t.Error("it cannot see")
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"message":{"tool_calls":[{"function":{"name":"a","arguments":"x"}}]},"done":true}`)
	f.Fuzz(func(t *testing.T, raw string) {
		_, _ = new(answer).Event(sse.Event{Data: []byte(raw)}, func(d providers.Delta) {
			for _, c := range d.ToolCalls {
				if c.ID == "" || c.Name == "" {
					t.Errorf("%+v", c)
				}
			}
		})
	})
}

// A model that does not know the switch may think within its text.
func TestThoughtsInText(t *testing.T) {
	s := serve(t, `{"message":{"role":"assistant","content":"<thi"}}
{"message":{"role":"assistant","content":"nk>hm</think>\n\nYes"}}
{"message":{"role":"assistant","content":" <"},"done":true,"done_reason":"stop"}
`)
	got, err := providertest.ReadAnswer(t, s.model(t, func(s *service.Section) { s.BaseURL += "/api/" }), providertest.Hi())
	if err != nil || got.Text != "Yes <" || got.Thought != "hm" {
		t.Errorf("%+v, %v", got, err)
	}
}
