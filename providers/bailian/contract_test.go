package bailian

import (
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/bailian"
	"xiaozhi/providers"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Reuses: true, Fake: func(t testing.TB) *servicetest.Server { return bailian.New(t).Server },
		Section: func(s *service.Section) { s.ID = bailian.App },
	})
}

func model(t *testing.T, f *bailian.Fake, extra map[string]any) providers.LLM {
	t.Helper()
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, ID: bailian.App, BaseURL: f.URL(), Proxy: "none", Extra: extra})
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

// The session is the service's, and another one when it is gone. Answers that hold all so
// far are said once.
func TestDialogues(t *testing.T) {
	f := bailian.New(t)
	for _, extra := range []map[string]any{nil, {"incremental_output": false}} {
		m := model(t, f, extra)
		for n := 1; n <= 3; n++ {
			if text, err := read(t, m, ask("and now", "d1")); err != nil || text != bailian.Answer(n, "and now") {
				t.Errorf("%v: %q, %v", extra, text, err)
			}
		}
		f.Forget()
		if text, err := read(t, m, ask("hello", "d1")); err != nil || text != bailian.Answer(1, "hello") {
			t.Errorf("a lost session: %q, %v", text, err)
		}
	}
	f.FailMidway()
	if text, err := read(t, model(t, f, nil), ask("hello", "d1")); err == nil || text == "" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := New(service.Section{Name: "x", Key: "k"}); err == nil || !strings.Contains(err.Error(), "app_id") {
		t.Errorf("without an application: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("result", `{"output":{"text":"abc","finish_reason":"null"}}`, `{"output":{"text":"a"}}`)
	f.Add("error", `{"code":"x","message":"y"}`, `{}`)
	f.Fuzz(func(_ *testing.T, name, first, second string) {
		for _, whole := range []bool{false, true} {
			a := &answer{turn: &platform.Turn{}, whole: whole}
			for _, raw := range []string{first, second} {
				if _, err := a.Event(sse.Event{Name: name, Data: []byte(raw)}, func(providers.Delta) {}); err != nil {
					break
				}
			}
		}
	})
}
