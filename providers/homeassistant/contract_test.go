package homeassistant

import (
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/homeassistant"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Reuses: true, Uploads: true, Fake: func(t testing.TB) *servicetest.Server { return homeassistant.New(t).Server },
	})
}

func model(t *testing.T, f *homeassistant.Fake, settings map[string]any) providers.LLM {
	t.Helper()
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL(), Proxy: "none", Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(words, device string) providers.LLMRequest {
	return providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: words}}, Language: "zh", DeviceID: device, AgentID: "a"}
}

// read reads a whole answer.
func read(t *testing.T, m providers.LLM, req providers.LLMRequest) (text string, failed error) {
	t.Helper()
	for d, err := range m.Generate(t.Context(), req) {
		text, failed = text+d.Text, err
	}
	return text, failed
}

// The name of the dialogue is Home Assistant's, and a new one when it has dropped it.
func TestDialogues(t *testing.T) {
	f := homeassistant.New(t)
	m := model(t, f, map[string]any{"agent_id": homeassistant.Agent})
	for i, c := range []struct {
		device string
		n      int
	}{{"d1", 1}, {"d1", 2}, {"d2", 1}, {"d1", 3}} {
		if text, err := read(t, m, ask("and now", c.device)); err != nil || text != homeassistant.Answer(c.n, "and now") {
			t.Errorf("%d: %q, %v", i, text, err)
		}
	}
	f.Forget()
	for n := 1; n <= 2; n++ {
		if text, err := read(t, m, ask("hello", "d1")); err != nil || text != homeassistant.Answer(n, "hello") {
			t.Errorf("%q, %v", text, err)
		}
	}
}

// Marks are not said, silence after an action is a word, and what is not understood is
// said or left to the next member.
func TestBehaviours(t *testing.T) {
	f := homeassistant.New(t)
	f.Behave(homeassistant.SSML)
	if text, err := read(t, model(t, f, nil), ask("hello", "d1")); err != nil || text == "" || strings.ContainsAny(text, "<>&") {
		t.Errorf("%q, %v", text, err)
	}
	f.Behave(homeassistant.Silent)
	if text, err := read(t, model(t, f, nil), ask("hello", "d1")); err != nil || text != "好的。" {
		t.Errorf("%q, %v", text, err)
	}
	f.Behave(homeassistant.NoIntent)
	if text, err := read(t, model(t, f, nil), ask("hello", "d1")); err != nil || text == "" {
		t.Errorf("%q, %v", text, err)
	}
	providertest.TestLLMFailure(t, model(t, f, map[string]any{"pass_on": true}), ask("hello", "d1"), providers.BadRequest)
	f.Behave(homeassistant.Asks)
	if text, err := read(t, model(t, f, nil), ask("hello", "d1")); err != nil || text == "" {
		t.Errorf("%q, %v", text, err)
	}
	f.Behave(homeassistant.Answers)
	providertest.TestLLMFailure(t, model(t, f, map[string]any{"agent_id": "conversation.nobody"}), ask("hello", "d1"), providers.BadRequest)
}

// With a pipeline the answer is streamed by the WebSocket, with the same dialogues and behaviours.
func TestStreams(t *testing.T) {
	t.Parallel()
	f := homeassistant.New(t)
	m := model(t, f, map[string]any{"pipeline": "preferred"})
	for n := 1; n <= 2; n++ {
		var pieces []string
		for d, err := range m.Generate(t.Context(), ask("hello", "d1")) {
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, d.Text)
		}
		if text := strings.Join(pieces, ""); text != homeassistant.Answer(n, "hello") || len(pieces) < 3 {
			t.Errorf("%q", pieces)
		}
	}
	for b, want := range map[homeassistant.Behaviour]string{homeassistant.SSML: "Answer 3 to hello.", homeassistant.Silent: "好的。", homeassistant.NoIntent: "Sorry, I couldn't understand that"} {
		f.Behave(b)
		if text, err := read(t, m, ask("hello", "d1")); err != nil || !strings.Contains(want+strings.Replace(want, "3", "4", 1)+strings.Replace(want, "3", "5", 1), text) || text == "" {
			t.Errorf("%v: %q, %v", b, text, err)
		}
	}
	f.Behave(homeassistant.Answers)
	providertest.TestLLMFailure(t, model(t, f, map[string]any{"pipeline": "none"}), ask("hello", "d1"), providers.BadRequest)
}

func TestStreamContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Fake: func(t testing.TB) *servicetest.Server { return homeassistant.New(t).Server },
		Section: func(s *service.Section) { s.Settings = map[string]any{"pipeline": "preferred"} },
	})
}

func FuzzStream(f *testing.F) {
	phrases, err := prompts.Load("")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"type":"event","event":{"type":"intent-progress","data":{"chat_log_delta":{"role":"assistant","content":"a"}}}}`)
	f.Add(`{"type":"event","event":{"type":"intent-end","data":{"intent_output":{"conversation_id":"c","response":{"speech":{}}}}}}`)
	f.Add(`{"type":"result","success":false,"error":{"code":3}}`)
	f.Fuzz(func(_ *testing.T, body string) {
		_, _ = (&stream{w: &wire{phrases: phrases, s: service.Section{Settings: map[string]any{"pass_on": true}}}, turn: &platform.Turn{}}).Event(sse.Event{Data: []byte(body)}, func(providers.Delta) {})
	})
}

func FuzzRead(f *testing.F) {
	m, err := New(service.Section{Name: "x", Key: "k"})
	if err != nil || m.Name() != "x" {
		f.Fatal(err)
	}
	f.Add(`{"response":{"response_type":"error","speech":{},"data":{"code":"unknown"}}}`)
	f.Add(`{"response":{"speech":{"ssml":{"speech":"<speak>a < b</speak>"}}}}`)
	f.Add(`{"message":"x"}`)
	f.Fuzz(func(_ *testing.T, body string) {
		_, _ = (&wire{s: service.Section{Settings: map[string]any{"pass_on": true}}}).read([]byte(strings.ReplaceAll(body, `"speech":""`, "")), &platform.Turn{})
	})
}
