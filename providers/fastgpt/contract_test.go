package fastgpt

import (
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/fastgpt"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Reuses: true, Fake: func(t testing.TB) *servicetest.Server { return fastgpt.New(t).Server },
	})
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

// A device has a chat of its own, whatever form the address has.
func TestDialogues(t *testing.T) {
	f := fastgpt.New(t)
	for i, end := range []string{"", "/api", "/api/v1", "/api/v1/chat/completions"} {
		m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL() + end, Proxy: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := read(t, m, ask("and now", "d1")); err != nil || text != fastgpt.Answer(i+1, "and now") { // the same chat after a restart
			t.Errorf("%d: %q, %v", i, text, err)
		}
		if text, err := read(t, m, ask("and now", "")); err != nil || text != fastgpt.Answer(1, "and now") {
			t.Errorf("nobody: %q, %v", text, err)
		}
	}
}

// Reasoning is not said, and a failure amid the answer is one.
func TestBehaviours(t *testing.T) {
	f := fastgpt.New(t)
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL(), Proxy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	f.Behave(fastgpt.Reasons)
	if text, err := read(t, m, ask("hello", "d1")); err != nil || text != fastgpt.Answer(1, "hello") {
		t.Errorf("%q, %v", text, err)
	}
	f.Behave(fastgpt.FailsMid)
	if text, err := read(t, m, ask("hello", "d1")); err == nil || text == "" || strings.Contains(err.Error(), "not the JSON") {
		t.Errorf("%q, %v", text, err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("", `{"choices":[{"delta":{"content":"a"}}]}`)
	f.Add("error", `{"code":514,"statusText":"unAuthApiKey","message":"x"}`)
	f.Fuzz(func(_ *testing.T, name, raw string) {
		a := &answer{}
		if _, err := a.Event(sse.Event{Name: name, Data: []byte(raw)}, func(providers.Delta) {}); err == nil {
			_ = a.EOF(nil)
		}
	})
}
