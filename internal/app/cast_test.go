package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/agent"
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/connection/camera"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// company is a set of agents with engines of their own, as the settings would give them.
type company map[string]engines.Chains

// engage gives an agent engines that answer with its name.
func (c company) engage(name string, steps ...providertest.Step) {
	c[name] = engines.Chains{
		LLM: &providertest.LLM{Label: name, Script: append(steps, providertest.Say("I am "+name+"."))},
		TTS: &providertest.TTS{Label: name, Script: []providertest.Speech{{Length: 300 * time.Millisecond}}},
	}
}

// said lists what an agent's voice has said.
func (c company) said(name string) (lines []string) {
	for _, s := range c[name].TTS.(*providertest.TTS).Spoken() {
		lines = append(lines, s.Request.Voice+": "+s.Request.Text)
	}
	return lines
}

// householdOf are settings of a kitchen with one agent and an attic with another.
func householdOf(cfg *config.Config) *config.Config {
	own := *cfg
	own.Agents = map[string]config.Persona{
		"anna": {Voice: "alto", Language: "en", Prompt: "storyteller"}, "teacher": {Voice: "tenor", Language: "en", Tools: config.DeviceTools{Deny: []string{"play_music"}}},
	}
	own.Devices.ByID = map[string]config.Device{kitchen: {Agent: "anna"}, attic: {Agent: "teacher"}}
	return &own
}

const (
	kitchen = "24:6f:28:aa:10:02"
	attic   = "24:6f:28:aa:10:03"
)

// ask types words at a device and waits for the whole answer.
func ask(ctx context.Context, t *testing.T, d *devicetest.Device, words string) {
	t.Helper()
	if err := d.Detect(words); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}
}

// Two devices of one server hear two voices and are answered by two models. Other agents
// count from the next turn on, without a new connection.
func TestTwoDevicesTwoAgents(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	inMemory(t, script{}, func(ctx context.Context, t *testing.T, h *harness) {
		before, after := company{}, company{}
		before.engage("anna")
		before.engage("teacher")
		after.engage("anna")
		cfg := householdOf(h.app.cfg)
		h.app.cast.Replace(castOf(cfg, texts, before))
		one, two := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen}), h.speaker(ctx, t, devicetest.Options{DeviceID: attic})
		ask(ctx, t, one, "who are you")
		ask(ctx, t, two, "who are you")
		if a, b := before.said("anna"), before.said("teacher"); !slices.Equal(a, []string{"alto: I am anna."}) || !slices.Equal(b, []string{"tenor: I am teacher."}) {
			t.Errorf("said %q and %q", a, b)
		}
		for name, want := range map[string]string{"anna": "story", "teacher": "language teacher"} {
			asked := before[name].LLM.(*providertest.LLM).Asked()[0].Request
			hasMusic := slices.ContainsFunc(asked.Tools, func(s providers.ToolSpec) bool { return s.Name == "play_music" })
			if !strings.Contains(asked.Messages[0].Content, want) || hasMusic != (name == "anna") {
				t.Errorf("%s: music %v, prompt %s", name, hasMusic, asked.Messages[0].Content)
			}
		}
		delete(cfg.Agents, "teacher") // the prompt of that name is an agent still, with what is that of all
		cfg.Agents["pirate"] = config.Persona{Prompt: "storyteller"}
		h.app.crew.setAgents(castOf(cfg, texts, after))
		ask(ctx, t, one, "who are you now")
		ask(ctx, t, two, "who are you now")
		if got := after.said("anna"); len(got) != 1 || len(before.said("anna")) != 1 || len(before.said("teacher")) != 1 {
			t.Errorf("the new anna said %q", got)
		}
		offered := after["anna"].LLM.(*providertest.LLM).Asked()[0].Request.Tools
		if !slices.ContainsFunc(offered, func(s providers.ToolSpec) bool {
			return s.Name == "change_role" && strings.Contains(string(s.Parameters), `"pirate"`)
		}) {
			t.Error("the new agent cannot be changed to")
		}
		if n := len(h.tts.Spoken()); n != 1 { // an agent without engines has those of all
			t.Errorf("the voice of all said %d sentences", n)
		}
	})
}

// "Be a teacher" brings the teacher's voice and model, for this device only, until it is
// sent away. The device's own agent greets it again then.
func TestRoleByVoice(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	become := func(role string) providertest.Step {
		return providertest.Call(providers.ToolCall{ID: "1", Name: "change_role", Arguments: `{"role":"` + role + `"}`})
	}
	roles := func(_ *harness, o *agent.Options) { o.Features = []feature.Feature{basics.Feature{}} }
	inMemory(t, script{replace: roles}, func(ctx context.Context, t *testing.T, h *harness) {
		all := company{}
		all.engage("anna", become("teacher"))
		all.engage("teacher", providertest.Say("I teach."), become("original"))
		h.app.cast.Replace(castOf(householdOf(h.app.cfg), texts, all))
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen})
		ask(ctx, t, d, "be a teacher")
		ask(ctx, t, d, "what do you do")
		ask(ctx, t, d, "be yourself again")
		ask(ctx, t, d, "who are you")
		if got, want := all.said("anna"), []string{"alto: OK, I have changed my role.", "alto: I am anna."}; !slices.Equal(got, want) {
			t.Errorf("anna said %q, want %q", got, want)
		}
		if got := all.said("teacher"); len(got) != 2 || got[0] != "tenor: I teach." {
			t.Errorf("the teacher said %q", got)
		}
	})
}

// A device's own agent speaks as the device's settings say; another one as itself.
func TestCast(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	cfg := householdOf(config.Default())
	cfg.Devices.ByID[kitchen] = config.Device{Agent: "anna", Voice: "bass", Language: "zh"}
	c := newCast(castOf(cfg, texts, nil))
	for _, w := range []struct{ device, name, agent, prompt, voice, language string }{
		{kitchen, "", "anna", "storyteller", "bass", "zh"},
		{kitchen, "anna", "anna", "storyteller", "alto", "en"},
		{kitchen, "teacher", "teacher", "teacher", "tenor", "en"},
		{kitchen, "storyteller", "storyteller", "storyteller", "bass", "zh"},
		{"other", "", "default", "default", "", ""},
		{"given", "", "teacher", "teacher", "tenor", "en"},
		{"gone", "", "default", "default", "", ""},
		{"other", "nobody", "", "", "", ""},
	} {
		c.assigned = func(device string) roster.Given {
			return roster.Given{Agent: map[string]string{"given": "teacher", "gone": "removed"}[device]}
		}
		p, ok := c.Of(w.device, w.name)
		if ok != (w.agent != "") || p.Name != w.agent || p.Prompt != w.prompt || p.Voice != w.voice || string(p.Language) != w.language {
			t.Errorf("%s, %q: %v, %+v", w.device, w.name, ok, p)
		}
	}
	limited := 0
	o := c.options(agent.Options{}, wire.Session{DeviceID: kitchen}, func(p *agent.Persona) {
		if p.LLM != nil {
			limited++
		}
	})
	if _, ok := o.Persona("anna"); !ok || limited != 0 {
		t.Error(ok, limited)
	}
	c.Replace(castOf(cfg, texts, map[string]engines.Chains{"anna": {LLM: &providertest.LLM{}}}))
	if _, ok := o.Persona("anna"); !ok || limited != 1 {
		t.Error("a model of an agent is not limited for strangers")
	}
}

// The agent of all may be one that is no prompt.
func TestMainPrompt(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{}": "default", "agent: {prompt: teacher}": "teacher",
		"agent: {prompt: anna}\nagents: {anna: {voice: slt, prompt: teacher}}": "teacher",
		"agent: {prompt: anna}\nagents: {anna: {voice: slt}}":                  "default",
		"agent: {prompt: anna}\nagents: {bob: {voice: slt}}":                   "",
	} {
		got, err := mainPrompt(mustLoadText(t, text), texts, "data")
		if got != want || (err == nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), "config.yaml:1: agent.prompt: ") || !strings.Contains(err.Error(), "did you mean bob? There are: bob, default, storyteller, teacher")) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// Devices that are not known look at as many pictures as they may ask models.
func TestVisionOfStrangers(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	all, limit := &providertest.LLM{Script: []providertest.Step{providertest.Say("A dog.")}}, strangers{requests: rate.NewLimiter(0, 1)}
	p := &pictures{
		llm: all, spare: limit.spare, texts: texts, log: slog.New(slog.DiscardHandler),
		of: func(device string) (providers.LLM, bool) { return nil, device == attic },
	}
	look := func(device string) error {
		_, err := p.Explain(t.Context(), camera.Picture{DeviceID: device, Language: "en", Question: "what is it"})
		return err
	}
	if err := look(attic); err != nil {
		t.Fatal(err)
	}
	if err := look(attic); !errors.Is(err, errSpent) {
		t.Errorf("the second picture: %v", err)
	}
	if err := look(kitchen); err != nil {
		t.Errorf("a known device: %v", err)
	}
}

// Pictures are looked at by the model of whom the device talks to; without one, by that
// of all.
func TestVisionOfAgent(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	cfg, own, all := householdOf(config.Default()), &providertest.LLM{Script: []providertest.Step{providertest.Say("A cat.")}}, &providertest.LLM{Script: []providertest.Step{providertest.Say("A dog.")}}
	a := &App{outside: newOutside(), cast: newCast(castOf(cfg, texts, map[string]engines.Chains{"anna": {Vision: own}}))}
	p := &pictures{llm: all, of: a.vision, texts: texts}
	for device, want := range map[string]string{kitchen: "A cat.", attic: "A dog."} {
		got, err := p.Explain(t.Context(), camera.Picture{DeviceID: device, Language: "en", Question: "what is it"})
		if got != want || err != nil {
			t.Errorf("%s: %q, %v", device, got, err)
		}
	}
}
