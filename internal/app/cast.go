package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"xiaozhi/agent"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/local"
	"xiaozhi/memory"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// persona is an agent with the chain that looks at pictures for it.
type persona struct {
	agent.Persona
	vision providers.LLM // nil: that of all
	memory memory.Mode
}

// personas are the agents there are. They do not change.
type personas struct {
	byName  map[string]persona
	devices map[string]config.Device // by Device-Id
	agentOf func(device, person string) string
	first   string // of the devices that have no other
	sound   string // whose sound of turns is kept where neither device nor agent says it
}

// cast owns the agents of all devices. Its methods may be called at any time.
type cast struct {
	now atomic.Pointer[personas]
	// main are the chains of agents that have none of their own.
	main atomic.Pointer[engines.Chains]
	// assigned says which agent somebody gave to a device beside the settings.
	assigned func(device string) roster.Given
	// papers reports whether an agent has documents in which something can be looked up.
	papers func(name string) bool
	// revision is that of an agent that people have made; 0: the settings or a prompt make it.
	revision func(name string) int
}

func newCast(p *personas) *cast {
	c := &cast{assigned: func(string) roster.Given { return roster.Given{} }, papers: func(string) bool { return false }, revision: func(string) int { return 0 }}
	c.main.Store(&engines.Chains{})
	c.Replace(p)
	return c
}

// Replace puts other agents in the place of those there are. They count from the next turn
// of every device on; turns that go on are finished by the ones that began them.
func (c *cast) Replace(p *personas) { c.now.Store(p) }

// Of returns the agent of a name for a device, and its own one of "". False: there is none.
// Its own speaks as the settings of the device say; another has its own voice first.
func (c *cast) Of(device, name string) (persona, bool) {
	all := c.now.Load()
	d := all.devices[device]
	own, given := name == "", roster.Given{}
	if own {
		given = c.assigned(device)
		name = cmp.Or(d.Agent, given.Agent, all.first)
	}
	p, ok := all.byName[name]
	if !ok && own {
		p, ok = all.byName[all.first] // the one it was given is not there any more
	}
	first, second := string(p.Language), d.Language
	voice, other := p.Voice, d.Voice
	if own {
		first, second, voice, other = second, first, other, voice
		p.Given = agent.Given{Agent: d.Agent, Times: given.Times}
	}
	p.Revision = c.revision(p.Name)
	if !c.papers(p.Name) {
		p.Deny = withoutPapers(p.Deny)
	}
	p.Record = recordOf(cmp.Or(d.Record, string(p.Record), all.sound))
	p.Language, p.Voice = text.TagOf(cmp.Or(first, second)), cmp.Or(voice, other)
	p.RealtimeVoice = p.Voice // if it is one of that service's
	return p, ok
}

// options gives a conversation the agents as its device sees them.
func (c *cast) options(o agent.Options, s wire.Session, limit func(*agent.Persona)) agent.Options {
	o.Persona = func(name string) (agent.Persona, bool) {
		p, ok := c.Of(s.DeviceID, name)
		limit(&p.Persona)
		return p.Persona, ok
	}
	o.AgentOf = func(person string) string {
		if all := c.now.Load(); all.agentOf != nil {
			return all.agentOf(s.DeviceID, person)
		}
		return ""
	}
	return o
}

// castOf makes the agents of the settings: those that are named, and one of each prompt.
func castOf(cfg *config.Config, texts *prompts.Set, made map[string]engines.Chains) *personas {
	all := &personas{byName: map[string]persona{}, devices: cfg.Devices.ByID, agentOf: cfg.AgentFor, first: cfg.Agent.Prompt, sound: cfg.Recording.Sound}
	main, typed := mainOf(cfg, texts), cfg.Agents[cfg.Agent.Prompt].Text
	for _, name := range cfg.AgentNames(texts.Names()) {
		s, e := cfg.Agents[name], made[name]
		p := persona{vision: e.Vision, memory: memoryModes[s.Memory], Persona: agent.Persona{
			Name: name, Prompt: s.Prompt, Language: text.TagOf(s.Language), Voice: s.Voice,
			ASR: e.ASR, LLM: e.LLM, TTS: e.TTS, Realtime: e.Duplex, NoRealtime: e.Cascade, NoChinese: e.ASR != nil && !e.Chinese,
			WakeWords: s.WakeWords, ExitWords: s.ExitWords, Allow: s.Tools.Allow, Deny: s.Tools.Deny, Forgets: s.Memory == config.Forget, Record: agent.Record(s.Record),
		}}
		if p.Prompt == "" && texts.Has(name) {
			p.Prompt = name
		}
		if p.Text = s.Text; p.Text == "" && p.Prompt == "" {
			p.Text = typed
		}
		p.Prompt = cmp.Or(p.Prompt, main)
		if p.memory != memory.Whole {
			p.Deny = slices.Concat(p.Deny, local.MemoryTools())
		}
		all.byName[name] = p
	}
	return all
}

// memoryModes are the values of agents.NAME.memory.
var memoryModes = map[string]memory.Mode{
	"": memory.Whole, config.Remember: memory.Whole, config.Summarise: memory.Summed, config.TalkOnly: memory.Nothing, config.Forget: memory.Nothing,
}

// mainOf is the prompt of the agents that have none of their own; "": agent.prompt names nothing.
func mainOf(cfg *config.Config, texts *prompts.Set) string {
	name := cfg.Agent.Prompt
	if texts.Has(name) {
		return name
	}
	if p, ok := cfg.Agents[name]; ok {
		return cmp.Or(p.Prompt, prompts.Default)
	}
	return ""
}

// mainPrompt is mainOf, with an error that says that agent.prompt names nothing.
func mainPrompt(cfg *config.Config, texts *prompts.Set, data string) (string, error) {
	if main := mainOf(cfg, texts); main != "" {
		return main, nil
	}
	names, place := cfg.AgentNames(texts.Names()), cfg.Agent.PromptPlace
	if place != "" {
		place += ": "
	}
	return "", errors.New(place + message.Both("app/no-prompt", cfg.Agent.Prompt, prompts.Nearest(cfg.Agent.Prompt, names), strings.Join(names, ", "), filepath.Join(data, "prompts")))
}

// vision returns the model that looks at pictures for whom a device talks to, nil: there is none, and whether the device
// is not known.
func (a *App) vision(device string) (llm providers.LLM, unknown bool) {
	name := ""
	if found, err := a.outside.devices.Find(device); err == nil {
		if c, ok := found.(*conversation); ok {
			name, unknown = c.Persona().Name, c.info.Unknown
		}
	}
	p, _ := a.cast.Of(device, name)
	return cmp.Or(p.vision, a.cast.main.Load().Vision), unknown
}

// condition serves how the services of a server are.
type condition struct{ *App }

// ServeHTTP implements [http.Handler].
func (a condition) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(a.chains()) // who asked is gone
}

// chains lists the chains of all, then those of agents.
func (a condition) chains() engines.States {
	players := a.cast.now.Load()
	return engines.StatesOf(a.base(), *a.cast.main.Load(), func(yield func(string, engines.Chains) bool) {
		for _, name := range a.crew.Names() {
			p := players.byName[name]
			if !yield(name, engines.Chains{ASR: p.ASR, LLM: p.LLM, TTS: p.TTS, Vision: p.vision, Duplex: p.Realtime}) {
				return
			}
		}
	}, a.crew.left())
}

// withoutPapers returns what is denied where nothing can be looked up in documents.
func withoutPapers(deny []string) []string { return slices.Concat(deny, local.DocumentTools()) }
