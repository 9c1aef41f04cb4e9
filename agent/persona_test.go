package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// actor is an agent with engines of its own, which answer after a second.
func actor(name string) Persona {
	return Persona{
		Name: name, Voice: name + "'s voice", Prompt: "storyteller", ASR: &providertest.ASR{Script: []providertest.Hearing{{Text: "to " + name}}},
		LLM: &providertest.LLM{Label: name, Answer: func(providers.LLMRequest) providertest.Step {
			return providertest.Say("Here is " + name + ". ").After(time.Second)
		}},
		TTS: &providertest.TTS{Label: name},
	}
}

// said lists what an agent's voice has said, with the voice that was asked for.
func said(p Persona) (lines []string) {
	for _, s := range p.TTS.(*providertest.TTS).Spoken() {
		lines = append(lines, s.Request.Voice+": "+s.Request.Text)
	}
	return lines
}

// staged is a conversation whose agents are exchanged while it runs.
func staged(t *testing.T, agents *atomic.Pointer[map[string]Persona], tools ...mcp.Source) (*visit, Options) {
	t.Helper()
	o := troupe(t, agents)
	return connect(t, o, router.Options{}, tools...), o
}

// troupe are the options of conversations with agents.
func troupe(t *testing.T, agents *atomic.Pointer[map[string]Persona]) Options {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		ASR: &providertest.ASR{}, LLM: &providertest.LLM{}, TTS: &providertest.TTS{}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
		Features: []feature.Feature{basics.Feature{}},
		Persona:  func(name string) (Persona, bool) { p, ok := (*agents.Load())[name]; return p, ok },
	}
}

// A new set of agents counts from the next turn on, without a new connection: a turn
// that goes on is finished by the old one, its voice too.
func TestPersonaChangesBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob := actor("Ann"), actor("Bob")
		bob.Prompt, bob.Language = "teacher", "en"
		var agents atomic.Pointer[map[string]Persona]
		agents.Store(&map[string]Persona{"": ann})
		v, _ := staged(t, &agents)
		v.types(t, "who is there")
		time.Sleep(300 * time.Millisecond) // the model thinks
		agents.Store(&map[string]Persona{"": bob})
		time.Sleep(10 * time.Second)
		v.types(t, "and who is there now")
		time.Sleep(10 * time.Second)
		if got, want := [][]string{said(ann), said(bob)}, [][]string{{"Ann's voice: Here is Ann."}, {"Bob's voice: Here is Bob."}}; !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
			t.Errorf("said %q, want %q", got, want)
		}
		asked := bob.LLM.(*providertest.LLM).Asked()
		if len(asked) != 1 || !strings.Contains(asked[0].Request.Messages[0].Content, "language teacher") {
			t.Errorf("Bob was asked %+v", asked)
		}
		v.bye()
	})
}

// A role that the user chooses comes with voice, model, recogniser and tools, and goes
// again with them. One that is gone gives way to the device's own.
func TestRoleIsAnAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob := actor("Ann"), actor("Bob")
		bob.Deny = []string{"lamp"}
		var agents atomic.Pointer[map[string]Persona]
		agents.Store(&map[string]Persona{"": ann, "Ann": ann, "Bob": bob})
		v, o := staged(t, &agents, &namedTools{"lamp", "door"})
		role := func(name string) (other bool, err error) {
			err = v.c.Do(t.Context(), func(h feature.Host) (err error) { other, err = h.SetRole(name); return err })
			return other, err
		}
		turn := func(words string) {
			v.types(t, words)
			time.Sleep(10 * time.Second)
		}
		if _, err := role("Eve"); !errors.Is(err, feature.ErrNoRole) {
			t.Errorf("no agent of that name: %v", err)
		}
		turn("one")
		if other, err := role("Bob"); !other || err != nil {
			t.Error(other, err)
		}
		turn("two")
		if p := v.c.Persona(); p.Name != "Bob" || (ears{&v.c.whom}).Name() != "fake-asr" || p.ASR != bob.ASR {
			t.Errorf("%+v", p)
		}
		if other, err := role("Ann"); other || err != nil {
			t.Error("its own agent is no other", other, err)
		}
		turn("three")
		_, _ = role("Bob")
		agents.Store(&map[string]Persona{"": ann})
		turn("four")
		if len(said(ann)) != 3 || len(said(bob)) != 1 {
			t.Errorf("said %q and %q", said(ann), said(bob))
		}
		tools := func(p Persona) (names []string) {
			for _, spec := range p.LLM.(*providertest.LLM).Asked()[0].Request.Tools {
				names = append(names, spec.Name)
			}
			return names
		}
		if a, b := tools(ann), tools(bob); !slices.Equal(a, []string{"lamp", "door"}) || !slices.Equal(b, []string{"door"}) {
			t.Errorf("tools %q and %q", a, b)
		}
		v.bye()
		o.Devices.Close()
	})
}

// A device that returns talks to whom it talked to, from its first turn on, and is offered
// nobody else's tools before.
func TestRoleIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann, bob := actor("Ann"), actor("Bob")
		bob.Allow = []string{"door"}
		var agents atomic.Pointer[map[string]Persona]
		agents.Store(&map[string]Persona{"": ann, "Ann": ann, "Bob": bob})
		set, err := prompts.Load("")
		if err != nil {
			t.Fatal(err)
		}
		o := Options{
			ASR: &providertest.ASR{}, LLM: &providertest.LLM{}, TTS: &providertest.TTS{}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
			Persona: func(name string) (Persona, bool) { p, ok := (*agents.Load())[name]; return p, ok },
		}
		o.Devices.Remember("d", Memory{Role: "Bob"})
		v := connect(t, o, router.Options{}, &namedTools{"lamp", "door"})
		if offers := v.tools.Offers(); len(offers) != 1 || offers[0].Tool.Name != "door" {
			t.Errorf("offered %+v", offers)
		}
		v.types(t, "hello")
		time.Sleep(10 * time.Second)
		if len(said(ann)) != 0 || len(said(bob)) != 1 {
			t.Errorf("said %q and %q", said(ann), said(bob))
		}
		v.bye()
	})
}

// What is heard is recognised by whom the device talks to when the utterance begins, in
// every listen mode, and its own words wake it and end the talk.
func TestPersonaListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann := actor("Ann")
		ann.WakeWords, ann.ExitWords = []string{"dear Ann"}, []string{"enough"}
		var agents atomic.Pointer[map[string]Persona]
		agents.Store(&map[string]Persona{"": ann})
		v, _ := staged(t, &agents)
		stream, err := ears{&v.c.whom}.Open(t.Context(), providers.ASRRequest{Rate: 16000})
		if err != nil || len(ann.ASR.(*providertest.ASR).Utterances()) != 1 {
			t.Errorf("%v: Ann has not heard it", err)
		}
		_ = stream.CloseWrite()
		for range stream.Transcripts() {
		}
		err = v.c.Do(t.Context(), func(feature.Host) error {
			if e, ok := v.c.detected("Dear Ann").(turn.WakeWord); !ok {
				t.Errorf("her wake word is %+v", e)
			}
			if e, ok := v.c.detected("hi xiaozhi").(turn.Typed); !ok {
				t.Errorf("the wake word of others is %+v", e)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		v.types(t, "enough")
		time.Sleep(10 * time.Second)
		if !strings.Contains(v.box.String(), "hang up") {
			t.Error("her exit word does not end the talk")
		}
		v.bye()
	})
}

// An agent that forgets leaves nothing of what was said to the next conversation.
func TestPersonaForgets(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ann := actor("Ann")
			ann.Forgets = forgets
			var agents atomic.Pointer[map[string]Persona]
			agents.Store(&map[string]Persona{"": ann})
			k := &keeperInMemory{past: Past{Talk: Talk{ID: "earlier"}, Left: time.Now(), Memory: Memory{History: []providers.Message{{Role: providers.RoleUser, Content: "what Bob was told"}}}}}
			o := troupe(t, &agents)
			o.Keeper = k
			v := connect(t, o, router.Options{})
			v.types(t, "hello")
			time.Sleep(10 * time.Second)
			v.bye()
			if (len(k.log) == 0) != forgets {
				t.Errorf("forgets %v: the keeper was given %q", forgets, k.log)
			}
			shown := fmt.Sprint(ann.LLM.(*providertest.LLM).Asked()[0].Request.Messages)
			if strings.Contains(shown, "what Bob was told") == forgets {
				t.Errorf("forgets %v: shown %s", forgets, shown)
			}
			dev, err := o.Devices.acquire(t.Context(), "d")
			if err != nil {
				t.Fatal(err)
			}
			if got := len(dev.memory().History); (got == 0) != forgets {
				t.Errorf("forgets %v: %d messages are kept", forgets, got)
			}
			o.Devices.release(dev)
		})
	}
}

// namedTools are tools that do nothing.
type namedTools []string

func (n namedTools) GetAvailableTools() (tools []mcp.Tool) {
	for _, name := range n {
		tools = append(tools, mcp.Tool{Name: name, Schema: []byte(`{"type":"object"}`), Origin: mcp.Local, Source: "local"})
	}
	return tools
}
func (n namedTools) CallTool(context.Context, string, map[string]any) (any, error) { return "", nil }
func (n namedTools) HasTool(name string) bool                                      { return slices.Contains(n, name) }
func (namedTools) Start(context.Context) error                                     { return nil }
func (namedTools) Stop() error                                                     { return nil }
func (namedTools) IsReady() bool                                                   { return true }
func (namedTools) ResetConnection() error                                          { return nil }

// TestAgentDeniesBeforeRun: what the device's agent does not have is not there for calls from outside either, that come
// before the conversation has begun.
func TestAgentDeniesBeforeRun(t *testing.T) {
	own := actor("own")
	own.Deny = []string{"DRILL"}
	var agents atomic.Pointer[map[string]Persona]
	agents.Store(&map[string]Persona{"": own})
	rt := router.New(router.Options{}, newScriptSource("local", []string{"drill query 0s drilled", "lamp query 0s lit"}))
	defer rt.Close()
	New(troupe(t, &agents), wire.Session{DeviceID: "aa"}, nil, rt)
	if offers := rt.Offers(); len(offers) != 1 || offers[0].Tool.Name != "lamp" {
		t.Errorf("%+v", offers)
	}
}
