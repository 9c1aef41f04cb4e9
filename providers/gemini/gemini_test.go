package gemini

import (
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

const answered = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"Hel"}]}}],"usageMetadata":{"promptTokenCount":9}}

data: {"candidates":[{"content":{"parts":[{"text":"lo","thoughtSignature":"t1"},{"functionCall":{"name":"lamp","args":{"on":true}},"thoughtSignature":"c1"},{"functionCall":{"id":"f2","name":"now"}}]}}]}

data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":2,"candidatesTokenCount":5,"thoughtsTokenCount":3}}

`

func TestAnswer(t *testing.T) {
	s := serve(t, answered)
	got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi())
	if err != nil || got.Text != "Hello" || got.Thought != "hm" || len(got.Calls) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	owner := generation.Owner("x", "gemini-3.5-flash-lite")
	if c := got.Calls[0]; c.ID == "" || c.Arguments != `{"on":true}` || c.Echo.For(owner) != `{"thoughtSignature":"c1"}` {
		t.Errorf("%+v", c)
	}
	if c := got.Calls[1]; c.ID != "f2" || c.Arguments != "{}" || c.Echo.For(owner) != `{"id":"f2"}` {
		t.Errorf("%+v", c)
	}
	if got.Echo.For(owner) != `{"thoughtSignature":"t1"}` || got.Usage != (providers.Usage{Prompt: 9, Cached: 2, Completion: 8, Reasoning: 3}) {
		t.Errorf("%+v, %+v", got.Echo, got.Usage)
	}
	if s.Path != "/v1beta/models/gemini-3.5-flash-lite:streamGenerateContent?alt=sse" || s.Header.Get("X-Goog-Api-Key") != "sk-secret-key" {
		t.Errorf("%s %v", s.Path, s.Header)
	}
	providertest.WantJSON(t, s.Body, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}}`)
}

func TestRequest(t *testing.T) {
	s := serve(t, answered)
	l := s.model(t, func(s *service.Section) {
		s.MaxTokens, s.Models = 99, map[service.Role]string{service.LLM: "models/gemini-2.5-flash-lite"}
	})
	owner := generation.Owner("x", "gemini-2.5-flash-lite")
	req := providertest.Dialogue(providers.NewEcho(owner, `{"thoughtSignature":"t1"}`), providers.NewEcho(owner, `{"id":"f1","thoughtSignature":"c1"}`))
	req.NoTools = true
	if _, err := providertest.ReadAnswer(t, l, req); err != nil {
		t.Fatal(err)
	}
	providertest.WantJSON(t, s.Body, `{"systemInstruction":{"parts":[{"text":"be kind"}]},"generationConfig":{"maxOutputTokens":99,"thinkingConfig":{"thinkingBudget":0}},
	 "toolConfig":{"functionCallingConfig":{"mode":"NONE"}},
	 "tools":[{"functionDeclarations":[{"name":"lamp","description":"d"},{"name":"now","description":""}]}],
	 "contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"text":"look"}]},
	  {"role":"model","parts":[{"text":"I see","thoughtSignature":"t1"},{"functionCall":{"id":"f1","name":"lamp","args":{"on":true}},"thoughtSignature":"c1"},{"functionCall":{"name":"now","args":{}}}]},
	  {"role":"user","parts":[{"functionResponse":{"id":"f1","name":"lamp","response":{"output":"done"}}},{"functionResponse":{"name":"now","response":{"output":"9:00"}}},{"text":"and?"}]}]}`)
}

// A call of another service has no signature, which the newer models want with the first.
func TestUnsignedCalls(t *testing.T) {
	s := serve(t, answered)
	if _, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Dialogue(providers.NewEcho("another", `{"thoughtSignature":"t1"}`), providers.Echo{})); err != nil {
		t.Fatal(err)
	}
	providertest.WantJSON(t, s.Body["contents"].([]any)[1], `{"role":"model","parts":[{"text":"I see"},
	 {"functionCall":{"name":"lamp","args":{"on":true}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"now","args":{}}}]}`)
}

func TestRefusals(t *testing.T) {
	s := serve(t, "")
	for _, c := range []struct {
		status int
		reply  string
		kind   providers.Kind
		part   string
	}{
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, providers.Unauthorized, "not valid"},
		{400, `[{"error":{"code":400,"message":"bad schema","status":"INVALID_ARGUMENT"}}]`, providers.BadRequest, "bad schema"},
		{429, `{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}`, providers.RateLimited, "quota"},
		{503, `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`, providers.Unavailable, "overloaded"},
		{200, "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", providers.BadRequest, "SAFETY"},
		{200, "data: {\"candidates\":[{\"finishReason\":\"SAFETY\"}]}\n\n", providers.BadRequest, "withheld"},
		{200, "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"print(x)\"}]}\n\n", providers.Unavailable, "MALFORMED"},
		{200, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n", providers.Unavailable, "ended before"},
		{200, "data: {\"error\":{\"code\":500,\"message\":\"internal\"}}\n\n", providers.Unavailable, "internal"},
	} {
		s.refused(t, c.status, c.reply, c.kind, c.part)
	}
}

// Words before a filter count.
func TestCutByAFilter(t *testing.T) {
	s := serve(t, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\ndata: {\"candidates\":[{\"finishReason\":\"RECITATION\"}]}\n\n")
	if got, err := providertest.ReadAnswer(t, s.model(t, nil), providertest.Hi()); err != nil || got.Text != "a" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAdapts(t *testing.T) {
	s := serve(t, `{"error":{"code":400,"message":"Thinking level is not supported: thinking_level","status":"INVALID_ARGUMENT"}}`)
	s.Status = 400
	l := s.model(t, nil)
	_, _ = providertest.ReadAnswer(t, l, providertest.Hi())
	s.Status, s.Reply = 200, answered
	if _, err := providertest.ReadAnswer(t, l, providertest.Hi()); err != nil || s.Body["generationConfig"] != nil {
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
	f.Add(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":[]}}]},"finishReason":"STOP"}]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		a := &answer{owner: "x"}
		give := func(d providers.Delta) {
			for _, c := range d.ToolCalls {
				if c.ID == "" || c.Name == "" {
					t.Errorf("%+v", c)
				}
			}
		}
		if _, err := a.Event(sse.Event{Data: []byte(raw)}, give); err == nil {
			_ = a.End(give)
		}
	})
}

// How little a model is made to think, and where it is asked, by its name.
func TestModels(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-2.5-flash-lite": `{"thinkingBudget":0}`, "gemini-2.5-pro": `{"thinkingBudget":128}`, "gemini-3.5-flash-lite": `{"thinkingLevel":"MINIMAL"}`,
		"gemini-3.1-pro-preview": `{"thinkingLevel":"LOW"}`, "gemini-flash-lite-latest": `{"thinkingLevel":"MINIMAL"}`, "gemini-2.0-flash": `null`, "gemma-4-27b-it": `null`,
	} {
		w := &wire{model: model}
		providertest.WantJSON(t, w.generationConfig()["thinkingConfig"], want)
	}
	w := &wire{model: "gemini-3.5-flash"}
	for _, want := range []string{`{"thinkingLevel":"LOW"}`, `null`} {
		if !w.Adapt(&transport.Refusal{Status: 400}, []byte("Thinking level MINIMAL is not supported for this model: thinking_level")) {
			t.Error("it does not adapt")
		}
		providertest.WantJSON(t, w.generationConfig()["thinkingConfig"], want)
	}
}

// A dialogue begins with the user, whoever has begun it.
func TestFirstMessage(t *testing.T) {
	_, out := dialogue([]providers.Message{{Role: providers.RoleAssistant}, {Role: providers.RoleAssistant, Content: "Hello!"}, {Role: providers.RoleUser, Content: "Hi"}}, "x", "")
	if len(out) != 3 || out[0].Role != "user" || out[0].Parts[0].Text == "" || out[1].Role != "model" || out[2].Parts[0].Text != "Hi" {
		t.Errorf("%+v", out)
	}
}

// An address is taken as people write it.
func TestAddresses(t *testing.T) {
	for _, end := range []string{"", "/", "/v1beta", "/v1beta/", "/v1beta/models"} {
		l, err := New(service.Section{Name: "g", Key: "k", BaseURL: "https://proxy.example:8443" + end, Proxy: "none"})
		if err != nil || l.w.at.Base != "https://proxy.example:8443/v1beta" {
			t.Errorf("%q: %v, %v", end, l, err)
		}
	}
}
