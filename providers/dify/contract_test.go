package dify

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/dify"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Reuses: true, Fake: func(t testing.TB) *servicetest.Server { return dify.New(t).Server },
	})
}

// model makes one at a fake.
func model(t *testing.T, f *dify.Fake, settings map[string]any) providers.LLM {
	t.Helper()
	none := 0
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL(), Proxy: "none", Retries: &none, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(words, device string) providers.LLMRequest {
	return providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: words}}, DeviceID: device, AgentID: "a"}
}

// read reads a whole answer.
func read(t *testing.T, m providers.LLM, req providers.LLMRequest) (text, thought string, failed error) {
	t.Helper()
	for d, err := range m.Generate(t.Context(), req) {
		text, thought, failed = text+d.Text, thought+d.Thought, err
	}
	return text, thought, failed
}

// Each sort of app says its answer once.
func TestApps(t *testing.T) {
	for _, c := range []struct {
		app      dify.App
		setting  string
		complete bool
		part     string // of the error
	}{
		{dify.Chatbot, "chat", true, ""}, {dify.Agent, "agent", true, ""}, {dify.NewAgent, "agent", true, ""}, {dify.Chatflow, "chatflow", true, ""},
		{dify.FailedFlow, "chatflow", false, "failed"}, {dify.Workflow, "workflow", true, ""}, {dify.Completion, "completion", true, ""},
		{dify.FailsMidway, "chat", false, "completion_request_error"},
	} {
		f := dify.New(t)
		f.Be(c.app)
		text, _, err := read(t, model(t, f, map[string]any{"app": c.setting}), ask("hello there", "d"))
		if whole := strings.TrimSpace(text) == dify.Answer(1, "hello there"); whole != c.complete {
			t.Errorf("app %d: %q", c.app, text)
		}
		if (err == nil) != (c.part == "") || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("app %d: %v", c.app, err)
		}
	}
}

// What was said before the moderation stands, and nothing more is said.
func TestModerated(t *testing.T) {
	f := dify.New(t)
	f.Be(dify.Moderated)
	text, _, err := read(t, model(t, f, nil), ask("hello there", "d"))
	if err != nil || text == "" || !strings.HasPrefix(dify.Answer(1, "hello there"), strings.TrimSpace(text)) {
		t.Errorf("%q, %v", text, err)
	}
}

// A device has a dialogue of its own, which begins anew when Dify has lost it.
func TestDialogues(t *testing.T) {
	f := dify.New(t)
	m := model(t, f, nil)
	for i, c := range []struct {
		device string
		n      int
	}{{"d1", 1}, {"d1", 2}, {"d2", 1}, {"d1", 3}, {"", 1}, {"", 1}} {
		if text, _, err := read(t, m, ask("and now", c.device)); err != nil || text != dify.Answer(c.n, "and now") {
			t.Errorf("%d: %q, %v", i, text, err)
		}
	}
	f.Forget()
	if text, _, err := read(t, m, ask("hello", "d1")); err != nil || text != dify.Answer(1, "hello") {
		t.Errorf("a lost dialogue: %q, %v", text, err)
	}
	req := ask("hello", "d1")
	req.Conversation = "another"
	if text, _, err := read(t, m, req); err != nil || text != dify.Answer(1, "hello") {
		t.Errorf("another talk: %q, %v", text, err)
	}
}

// An answer that is left is stopped, for the user that it is for.
func TestStop(t *testing.T) {
	f := dify.New(t)
	m := model(t, f, nil)
	for range m.Generate(t.Context(), ask("hello", "d1")) {
		break
	}
	if text, _, err := read(t, m, ask("again", "d1")); err != nil || text == "" { // it waits for the stop
		t.Errorf("%q, %v", text, err)
	}
	for end := time.Now().Add(5 * time.Second); f.Running() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if stops := f.Stops(); len(stops) != 1 || f.Running() != 0 || strings.Contains(stops[0].User, "d1") {
		t.Errorf("%d are running, stopped: %+v", f.Running(), stops)
	}
}

func TestRefusals(t *testing.T) {
	f := dify.New(t)
	f.LimitHard()
	f.Fail(servicetest.RateLimited)
	providertest.TestLLMFailure(t, model(t, f, nil), ask("hi", ""), providers.NoCredit)
	providertest.TestLLMFailure(t, model(t, dify.New(t), nil), providers.LLMRequest{}, providers.BadRequest)
	if _, err := New(service.Section{Name: "x", Settings: map[string]any{"app": "robot"}}); err == nil {
		t.Error("an app of an unknown sort is taken")
	}
	if _, err := New(service.Section{Name: "x", BaseURL: "ftp://x"}); err == nil {
		t.Error("an address that is none is taken")
	}
}
