package ragflow

import (
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/ragflow"
	"xiaozhi/providers"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

func TestContract(t *testing.T) {
	for name, settings := range map[string]map[string]any{"chat": {"chat_id": ragflow.Chat}, "agent": {"agent_id": ragflow.Agent}} {
		t.Run(name, func(t *testing.T) {
			providertest.TestModelContract(t, providertest.Case{
				Kind: Kind(), Reuses: true, Fake: func(t testing.TB) *servicetest.Server { return ragflow.New(t).Server },
				Section: func(s *service.Section) { s.Settings = settings },
			})
		})
	}
}

func model(t *testing.T, f *ragflow.Fake, setting, id string) providers.LLM {
	t.Helper()
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL(), Proxy: "none", Settings: map[string]any{setting: id}})
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

// The session is the service's, and another one when it is gone; whether a piece of an
// answer holds all before it makes no difference.
func TestDialogues(t *testing.T) {
	for _, c := range []struct{ setting, id string }{{"chat_id", ragflow.Chat}, {"agent_id", ragflow.Agent}} {
		f := ragflow.New(t)
		m := model(t, f, c.setting, c.id)
		for n := 1; n <= 4; n++ {
			if n == 3 {
				f.Accumulate()
			}
			if text, err := read(t, m, ask("and now", "d1")); err != nil || text != ragflow.Answer(n, "and now") {
				t.Errorf("%s: %q, %v", c.setting, text, err)
			}
		}
		f.Forget()
		if text, err := read(t, m, ask("hello", "d1")); err != nil || text != ragflow.Answer(1, "hello") {
			t.Errorf("a lost session: %q, %v", text, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	providertest.TestLLMFailure(t, model(t, ragflow.New(t), "chat_id", "nobody"), ask("hello", ""), providers.BadRequest)
	for _, s := range []service.Section{
		{Name: "x"}, {Name: "x", BaseURL: "http://x"}, {Name: "x", BaseURL: "http://x", Settings: map[string]any{"chat_id": "a", "agent_id": "b"}},
	} {
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%+v: %v", s.Settings, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"code":0,"data":{"answer":"a","start_to_think":true}}`, `{"code":0,"data":true}`)
	f.Add(`{"event":"message","data":{"content":"a"}}`, `{"event":"node_finished","data":{"content":{}}}`)
	f.Add(`{"code":109,"message":"no"}`, `{"data":{"answer":"**ERROR**: x"}}`)
	f.Fuzz(func(_ *testing.T, first, second string) {
		a := &answer{turn: &platform.Turn{}}
		for _, raw := range []string{first, second} {
			if _, err := a.Event(sse.Event{Data: []byte(raw)}, func(providers.Delta) {}); err != nil {
				return
			}
		}
		_ = a.EOF(nil)
	})
}
