package coze

import (
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/coze"
	"xiaozhi/providers"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

func TestContract(t *testing.T) {
	providertest.TestModelContract(t, providertest.Case{
		Kind: Kind(), Reuses: true, Fake: func(t testing.TB) *servicetest.Server { return coze.New(t).Server },
		Section: func(s *service.Section) { s.ID = coze.Bot },
	})
}

// model makes one at a fake.
func model(t *testing.T, f *coze.Fake, bot string) providers.LLM {
	t.Helper()
	m, err := New(service.Section{Name: "x", Key: servicetest.Key, BaseURL: f.URL(), Proxy: "none", Settings: map[string]any{"bot_id": bot}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ask(words, device string) providers.LLMRequest {
	return providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: words}}, DeviceID: device, AgentID: "a"}
}

// read reads a whole answer.
func read(t *testing.T, m providers.LLM, req providers.LLMRequest) (text string, calls []providers.ToolCall, failed error) {
	t.Helper()
	for d, err := range m.Generate(t.Context(), req) {
		text, calls, failed = text+d.Text, append(calls, d.ToolCalls...), err
	}
	return text, calls, failed
}

// Nothing but the answer is said, and once, whatever else comes.
func TestDialogues(t *testing.T) {
	f := coze.New(t)
	m := model(t, f, coze.Bot)
	for i, c := range []struct {
		behaviour coze.Behaviour
		device    string
		n         int
	}{{coze.Answers, "d1", 1}, {coze.NoDone, "d1", 2}, {coze.Debug, "d2", 1}, {coze.Answers, "d1", 3}, {coze.Answers, "", 1}} {
		f.Behave(c.behaviour)
		if text, _, err := read(t, m, ask("and now", c.device)); err != nil || text != coze.Answer(c.n, "and now") {
			t.Errorf("%d: %q, %v", i, text, err)
		}
	}
	f.Forget()
	if text, _, err := read(t, m, ask("hello", "d1")); err != nil || text != coze.Answer(1, "hello") {
		t.Errorf("a lost dialogue: %q, %v", text, err)
	}
	f.Behave(coze.Fails)
	if _, _, err := read(t, m, ask("hello", "d1")); err == nil {
		t.Error("a chat that has failed is an answer")
	}
}

// A tool of the bot is one of ours: its result goes back, and the answer goes on.
func TestTools(t *testing.T) {
	f := coze.New(t)
	f.Behave(coze.Tool)
	m := model(t, f, coze.Bot)
	req := ask("hello", "d1")
	_, calls, err := read(t, m, req)
	if err != nil || len(calls) != 1 {
		t.Fatalf("%+v, %v", calls, err)
	}
	req.Messages = append(req.Messages, providers.Message{Role: providers.RoleAssistant, ToolCalls: calls},
		providers.Message{Role: providers.RoleTool, ToolCallID: calls[0].ID, Content: "21 degrees"})
	if text, more, err := read(t, m, req); err != nil || text == "" || len(more) > 0 {
		t.Errorf("%q, %+v, %v", text, more, err)
	}
	if !slices.ContainsFunc(f.Requests(), func(r servicetest.Request) bool { return strings.Contains(string(r.Body), "21 degrees") }) {
		t.Error("the result did not arrive")
	}
	if _, calls, err = read(t, m, ask("once more", "d1")); err != nil || len(calls) != 1 {
		t.Fatalf("%+v, %v", calls, err)
	}
	f.Behave(coze.Answers) // the user goes on, and nobody waits for the tool
	if text, _, err := read(t, m, ask("forget it", "d1")); err != nil || text == "" || f.Cancels() != 1 {
		t.Errorf("%q, %v, %d cancelled", text, err, f.Cancels())
	}
}

// An answer that is left is cancelled, so that the next one is not refused.
func TestStop(t *testing.T) {
	f := coze.New(t)
	m := model(t, f, coze.Bot)
	if _, _, err := read(t, m, ask("hello", "d1")); err != nil {
		t.Fatal(err)
	}
	for range m.Generate(t.Context(), ask("hello", "d1")) {
		break
	}
	if text, _, err := read(t, m, ask("again", "d1")); err != nil || !strings.Contains(text, "again") {
		t.Errorf("%q, %v", text, err)
	}
	for end := time.Now().Add(5 * time.Second); f.Running() > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if f.Cancels() != 1 || f.Running() != 0 {
		t.Errorf("%d are running, %d cancelled", f.Running(), f.Cancels())
	}
}

func TestRefusals(t *testing.T) {
	providertest.TestLLMFailure(t, model(t, coze.New(t), coze.Bot), providers.LLMRequest{}, providers.BadRequest)
	if _, err := New(service.Section{Name: "x", Key: "k"}); err == nil || !strings.Contains(err.Error(), "app_id") {
		t.Errorf("without a bot: %v", err)
	}
}

// A bot cannot have a tool where none may be used, and what breaks off is no answer.
func TestNoAnswer(t *testing.T) {
	action := sse.Event{Name: "conversation.chat.requires_action", Data: []byte(`{"id":"c","required_action":{"submit_tool_outputs":{"tool_calls":[{"id":"1","function":{"name":"f"}}]}}}`)}
	none := func(providers.Delta) {}
	a := &answer{turn: &platform.Turn{}, owner: "x"}
	if over, err := a.Event(action, none); !over || err != nil || !a.turn.Waits {
		t.Errorf("%v, %v", over, err)
	}
	a = &answer{turn: &platform.Turn{LLMRequest: providers.LLMRequest{NoTools: true}}}
	if _, err := a.Event(action, none); err == nil {
		t.Error("a tool is used where none may be")
	}
	for _, e := range []sse.Event{{Name: "done", Data: []byte(`"[DONE]"`)}, {Data: []byte(`{"code":"5000","msg":"x"}`)}, {Name: "error", Data: []byte(`{}`)}} {
		if _, err := a.Event(e, none); err == nil {
			t.Errorf("%s is taken", e.Data)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add("conversation.message.delta", `{"type":"answer","content":"a"}`, `{"type":"answer","id":"2"}`)
	f.Add("conversation.chat.requires_action", `{"required_action":null}`, `{"code":"0"}`)
	f.Fuzz(func(t *testing.T, name, first, second string) {
		a := &answer{turn: &platform.Turn{}, owner: "x"}
		for _, raw := range []string{first, second} {
			_, err := a.Event(sse.Event{Name: name, Data: []byte(raw)}, func(d providers.Delta) {
				for _, c := range d.ToolCalls {
					if c.ID == "" || c.Name == "" {
						t.Errorf("%+v", c)
					}
				}
			})
			if err != nil {
				return
			}
		}
	})
}
