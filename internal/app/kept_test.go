package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/keeper"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// types has a device that is connected ask, and waits for the reply.
func types(ctx context.Context, t *testing.T, d *devicetest.Device, words string) {
	t.Helper()
	if err := d.Detect(words); err != nil {
		t.Fatal(err)
	}
	if _, err := d.WaitReply(ctx); err != nil {
		t.Fatal(err)
	}
}

// dialogue is what the model was shown last of what was said.
func (h *harness) dialogue() string {
	h.t.Helper()
	asked := h.llm.Asked()
	if len(asked) == 0 {
		h.t.Fatal("the model was not asked")
	}
	var all []string
	for _, m := range asked[len(asked)-1].Request.Messages {
		if m.Role != providers.RoleSystem && m.Content != "" {
			all = append(all, string(m.Role)+": "+m.Content)
		}
	}
	return strings.Join(all, "\n")
}

// killed copies what a program that is killed now leaves behind to another folder.
func killed(t *testing.T, data, copied string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "xiaozhi.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "-shm") || strings.HasSuffix(f, ".lock") { // the next one makes them anew
			continue
		}
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, filepath.Base(f)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTalkOutlivesProgram: a device goes on with its talk after the program was killed, for ten minutes; what was learned
// of it stays for good.
func TestTalkOutlivesProgram(t *testing.T) {
	data, left := t.TempDir(), t.TempDir()
	first := script{data: data, llm: []providertest.Step{providertest.Say("A fine colour."), providertest.Say("Why not.")}}
	inMemory(t, first, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.dial(ctx, devicetest.Options{NoMCP: true})
		types(ctx, t, d, "my sofa is green")
		types(ctx, t, d, "I want another")
		time.Sleep(time.Second) // what is handed over is written within a quarter of that
		killed(t, data, left)
	})
	for name, c := range map[string]struct {
		away time.Duration
		want string
	}{
		"soon": {time.Minute, "user: my sofa is green\nassistant: A fine colour.\nuser: I want another\nassistant: Why not.\nuser: what did I just say"},
		"late": {11 * time.Minute, "user: what did I just say"},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			killed(t, left, data)
			again := script{data: data, llm: []providertest.Step{providertest.Say("You know.")}}
			inMemory(t, again, func(ctx context.Context, t *testing.T, h *harness) {
				time.Sleep(c.away)
				d := h.dial(ctx, devicetest.Options{NoMCP: true})
				types(ctx, t, d, "what did I just say")
				if got := h.dialogue(); !strings.HasSuffix(got, c.want) || strings.Contains(got, "sofa") != (name == "soon") {
					t.Errorf("the model was shown\n%s", got)
				}
				time.Sleep(time.Second) // the turn is over a little after its sound
				if err := h.app.stored.Log.Flush(ctx); err != nil {
					t.Fatal(err)
				}
				turns, err := h.app.stored.Turns.List(ctx, "", store.Page{})
				if err != nil || len(turns) != 3 || turns[0].Kind != "typed" || turns[0].Said != "You know." || turns[0].LLMName == "" {
					t.Errorf("%+v %v", turns, err)
				}
				if same := len(turns) == 3 && turns[0].ConversationID == turns[2].ConversationID; same != (name == "soon") {
					t.Errorf("one conversation: %v", same)
				}
			})
		})
	}
}

// TestLanguageOutlivesProgram: the language that a device has named when it was switched on is known after a restart.
func TestLanguageOutlivesProgram(t *testing.T) {
	data, left := t.TempDir(), t.TempDir()
	inMemory(t, script{data: data}, func(ctx context.Context, t *testing.T, h *harness) {
		h.dial(ctx, devicetest.Options{NoMCP: true})
		time.Sleep(time.Second)
		h.app.devices.Asked("24:6f:28:aa:10:02", "en")
		h.app.devices.Asked("24:6f:28:aa:10:02", "")
		time.Sleep(time.Second) // what is handed over is written within a quarter of that
		killed(t, data, left)
	})
	inMemory(t, script{data: left}, func(_ context.Context, t *testing.T, h *harness) {
		if got := h.app.devices.Language("24:6f:28:aa:10:02"); got != "en" || h.app.devices.Language("another") != "zh" {
			t.Errorf("%q", got)
		}
	})
}

// TestMessagesComeBack: what a turn has said comes back as it was, with its calls.
func TestMessagesComeBack(t *testing.T) {
	a := without(t, t.TempDir(), nil)
	defer a.Close()
	if err := a.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.keeper(wire.Session{DeviceID: "m", Unknown: true}).OrNone() != nil {
		t.Error("what a stranger says is kept")
	}
	device := store.Identity{ID: "m", Address: "m", State: store.DevicePaired, FirstAt: time.Now()}
	if err := a.stored.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{device}}); err != nil {
		t.Fatal(err)
	}
	k := a.keeper(wire.Session{DeviceID: "m"})
	if past, err := k.Load(t.Context()); err != nil || !reflect.DeepEqual(past, agent.Past{}) {
		t.Errorf("%+v %v", past, err)
	}
	messages := []providers.Message{
		{Role: providers.RoleUser, Content: `how "warm" is it? <几度>` + "\x00"},
		{Role: providers.RoleAssistant, Content: "", ToolCalls: []providers.ToolCall{{ID: "c1", Name: "heat", Arguments: `{"room": 1}`}}},
		{Role: providers.RoleTool, ToolCallID: "c1", Content: "21"},
		{Role: providers.RoleAssistant, Content: "It is 21."},
	}
	k.Call(router.Record{CallID: "c1", Tool: "home.heat", Source: "external:home", Kind: "query", Arguments: `{"room":1}`, Outcome: "error", Took: time.Second})
	now := time.Now().UTC().Truncate(time.Millisecond)
	talk := agent.Talk{ID: k.NewID(), Began: now, Turns: 1}
	k.Turn(&agent.Turn{Talk: talk, At: now, Kind: agent.TurnSaid, Messages: messages})
	k.Learn(agent.Memory{Role: "pirate", Pause: time.Second, Language: "en", Spoke: true})
	k.Ended(talk, now.Add(time.Second), context.Canceled)
	if err := a.stored.Log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	past, err := a.keeper(wire.Session{DeviceID: "m"}).Load(t.Context())
	want := agent.Past{
		Memory: agent.Memory{History: messages, Role: "pirate", Pause: time.Second, Language: "en", Spoke: true}, Talk: talk, Left: now.Add(time.Second),
	}
	if err != nil || !reflect.DeepEqual(past, want) {
		t.Errorf("%+v %v", past, err)
	}
	calls, err := a.stored.Turns.Calls(t.Context(), "m", store.Page{})
	if err != nil || len(calls) != 1 || calls[0].Name != "home.heat" || calls[0].Result != "21" || calls[0].Fault == "" || calls[0].Took != time.Second {
		t.Errorf("%+v %v", calls, err)
	}
	late := a.keeper(wire.Session{DeviceID: "m"})
	a.forgetting.begin("m")
	if past, err := late.Load(t.Context()); !errors.Is(err, keeper.ErrForgotten) || past.Talk.ID != "" {
		t.Errorf("of a device that was forgotten since: %+v %v", past, err)
	}
	k.Erase(talk.ID)
	if err := a.stored.Log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if past, err := a.keeper(wire.Session{DeviceID: "m"}).Load(t.Context()); err != nil || len(past.Memory.History) != 0 || past.Memory.Role != "pirate" {
		t.Errorf("%+v %v", past, err)
	}
}

// TestAgentOfKeptTurn: the store says whose a turn was, and by which revision of that agent's settings it was answered.
func TestAgentOfKeptTurn(t *testing.T) {
	first := script{data: t.TempDir(), llm: []providertest.Step{providertest.Say("One."), providertest.Say("Two."), providertest.Say("Three.")}}
	inMemory(t, first, func(ctx context.Context, t *testing.T, h *harness) {
		h.app.crew.shop = &fakeShop{ready: company{}}
		r, by := h.app.crew.roster, roster.Author{Name: "anna"}
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		types(ctx, t, d, "first")
		for _, doc := range []string{`{"prompt":"teacher"}`, `{"prompt":"storyteller"}`} {
			if _, err := r.Set(ctx, by, "pirate", []byte(doc)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Assign(ctx, kitchen, "pirate"); err != nil {
			t.Fatal(err)
		}
		types(ctx, t, d, "second")
		time.Sleep(time.Second)
		if err := h.app.stored.Log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		turns, err := h.app.stored.Turns.List(ctx, "", store.Page{})
		if err != nil || len(turns) != 2 || turns[0].AgentRev != 2 || turns[1].AgentRev != 0 {
			t.Fatalf("%+v %v", turns, err)
		}
		talk, err := h.app.stored.Conversations.Get(ctx, turns[0].ConversationID)
		if err != nil || talk.AgentID == "" {
			t.Errorf("%+v %v", talk, err)
		}
	})
}

// TestSpokenForget: who has the assistant forget what was said deletes it from the store as well, with that order itself; what is said after
// that is another talk. Another device's talk stays.
func TestSpokenForget(t *testing.T) {
	order := providers.ToolCall{ID: "c1", Name: "forget_conversation", Arguments: "{}"}
	first := script{data: t.TempDir(), llm: []providertest.Step{
		providertest.Say("I remember."), providertest.Say("A fine colour."), providertest.Call(order), providertest.Say("It is forgotten."), providertest.Say("Yes."),
	}}
	first.replace = func(h *harness, o *agent.Options) {
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app})
	}
	inMemory(t, first, func(ctx context.Context, t *testing.T, h *harness) {
		hall := h.speaker(ctx, t, devicetest.Options{DeviceID: attic, NoMCP: true})
		types(ctx, t, hall, "the hall is blue")
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		types(ctx, t, d, "my sofa is green")
		time.Sleep(time.Second) // it is written
		types(ctx, t, d, "forget what I said")
		types(ctx, t, d, "are you there")
		time.Sleep(time.Second)
		if err := h.app.stored.Log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		turns, err := h.app.stored.Turns.List(ctx, "", store.Page{})
		if err != nil || len(turns) != 2 || turns[0].Heard != "are you there" || turns[1].Heard != "the hall is blue" {
			t.Errorf("%+v %v", turns, err)
		}
		if got := h.dialogue(); strings.Contains(got, "sofa") {
			t.Errorf("the model is shown %s", got)
		}
	})
}
