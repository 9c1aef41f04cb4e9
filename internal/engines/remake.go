package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
)

// Limits of what is made while devices talk.
const (
	remakeTime = 15 * time.Second // all of it
	dialTime   = 2 * time.Second  // of it, for reaching services
)

// Remake makes what other settings need beside what there is, and gets it ready. The chains of the agent changed must be
// complete: the error says for people which of their members cannot be made.
func (f *Maker) Remake(ctx context.Context, cfg *config.Config, texts *prompts.Set, changed string) (Set, error) {
	wanted, all := map[string][]string{}, []string{} // by key, what it must have
	for role, names := range chainsOf(cfg.Agents[changed]) {
		engines := named(role, names)
		wanted["agents."+changed+"."+keys()[role]] = engines
		all = append(all, engines...)
	}
	return f.remake(ctx, cfg, texts, all, func(e *Set) error { return e.missing(wanted) })
}

// Renew makes what changed settings need beside what there is, and gets it ready. A chain that has changed must have a member:
// the error says for people why it has none. Of single members Set.Left tells, as at the start.
func (f *Maker) Renew(ctx context.Context, before, cfg *config.Config, texts *prompts.Set) (Set, error) {
	var others []string // by role and name
	var changed []chainAt
	add := func(path string, was, now map[string][]string, sections map[string]config.Provider) {
		for role, names := range now {
			other := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				return slices.Contains(was[role], name) && reflect.DeepEqual(sections[name], cfg.Providers[name])
			})
			others = append(others, named(role, other)...)
			if len(other) > 0 || !slices.Equal(was[role], names) {
				changed = append(changed, chainAt{path + keys()[role], role, names})
			}
		}
	}
	add("", chainsOfAll(before), chainsOfAll(cfg), before.Providers)
	for name, p := range cfg.Agents {
		add("agents."+name+".", chainsOf(before.Agents[name]), chainsOf(p), before.Providers)
	}
	return f.remake(ctx, cfg, texts, others, func(e *Set) error {
		var empty []error
		for _, c := range changed {
			empty = append(empty, e.empty(c))
		}
		return errors.Join(empty...)
	})
}

// chainAt is a chain of the settings, with the key that names it.
type chainAt struct {
	key, role string
	names     []string
}

// empty says why none of the members that a chain names could be made; nil: one could, or anything else may stand in.
func (e *Set) empty(c chainAt) error {
	var why []error
	for _, name := range c.names {
		err := e.Left[c.role+" "+name]
		if err == nil {
			return nil
		}
		why = append(why, fmt.Errorf("%s: %s", c.key, message.Both("agents/no-engine", name, err)))
	}
	return errors.Join(why...)
}

// remake makes a set, tries again what others name, as role and name, and gets all ready. check says what must not be missing.
func (f *Maker) remake(ctx context.Context, cfg *config.Config, texts *prompts.Set, others []string, check func(e *Set) error) (Set, error) {
	ctx, stop := context.WithTimeout(ctx, remakeTime)
	defer stop()
	e, err := f.make(ctx, cfg, texts, NewReport(slog.New(slog.DiscardHandler)), func(key string) bool { return slices.Contains(others, key) })
	if err != nil {
		return Set{}, err
	}
	if err = errors.Join(check(&e), e.Start().Ready(ctx), ctx.Err()); err != nil { // what was given up is not left out
		e.Release()
		return Set{}, err
	}
	return e, nil
}

// mainOf returns the chains of all as those of an agent.
func mainOf(cfg *config.Config) config.Persona {
	return config.Persona{ASR: cfg.ASR, LLM: cfg.LLM, TTS: cfg.TTS, Vision: cfg.Vision, Realtime: cfg.Realtime}
}

// chainsOf returns the chains of an agent, by role as the report calls it.
func chainsOf(p config.Persona) map[string][]string {
	return map[string][]string{"ASR": p.ASR, "LLM": p.LLM, "TTS": p.TTS, "VLM": p.Vision, "S2S": p.Realtime}
}

// keys are those of the settings, by role as the report calls it.
func keys() map[string]string {
	return map[string]string{"ASR": "asr", "LLM": "llm", "TTS": "tts", "VLM": "vision", "S2S": "realtime", "VEC": "embed", "VPR": "voiceprint"}
}

// named are engines by role and name.
func named(role string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, role+" "+name)
	}
	return all
}

// missing says which engines that are wanted could not be made.
func (e *Set) missing(wanted map[string][]string) error {
	var all []error
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		for _, engine := range wanted[key] {
			if err := e.Left[engine]; err != nil {
				all = append(all, fmt.Errorf("%s: %s", key, message.Both("agents/no-engine", engine[4:], err)))
			}
		}
	}
	return errors.Join(all...)
}

// ForAgent makes the chains that one agent has for itself, beside a program that runs. The error says for people what
// cannot be made. free closes what was made.
func ForAgent(ctx context.Context, cfg *config.Config, p config.Persona, texts *prompts.Set, log *slog.Logger) (c Chains, free func(), err error) {
	const name = "draft"
	own := *cfg
	own.Agents = map[string]config.Persona{name: p}
	maker, e := New(log), Set{}
	b := maker.batch(&own, NewReport(slog.New(slog.DiscardHandler)))
	ctx, stop := context.WithTimeout(ctx, remakeTime)
	defer stop()
	_, err = b.think(texts, true)
	if err == nil {
		e.Agents, err = b.agents(ctx)
	}
	if err == nil {
		wanted := map[string][]string{}
		for role, names := range chainsOf(p) {
			wanted["agents."+name+"."+keys()[role]] = named(role, names)
		}
		e.Left = b.report.left
		err = e.missing(wanted)
	}
	if err == nil {
		err = b.start.Ready(ctx)
	}
	if err != nil {
		maker.Close()
		return c, nil, err
	}
	return e.Agents[name], maker.Close, nil
}
