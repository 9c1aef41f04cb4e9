package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/service"
)

// Limits of what is made while devices talk.
const (
	remakeTime = 15 * time.Second // all of it
	dialTime   = 2 * time.Second  // of it, for reaching services
)

// Remake makes what the agents of other settings need beside what there is. The chains of the agent changed must be
// complete: the error says for people which of their members cannot be made, and then nothing has changed. drop gives
// up what was made.
func (f *Maker) Remake(ctx context.Context, cfg *config.Config, changed string) (all map[string]Chains, drop func(), err error) {
	ctx, stop := context.WithTimeout(ctx, remakeTime)
	defer stop()
	before := *f
	f.made, f.clients = maps.Clone(f.made), maps.Clone(f.clients)
	f.cfg, f.start, f.report = cfg, &Start{log: f.log}, NewReport(slog.New(slog.DiscardHandler))
	drop = func() {
		failed := *f
		*f = before
		for key, m := range failed.made {
			if _, old := f.made[key]; !old {
				m.close()
			}
		}
		failed.closeClients(func(name string) bool { return f.clients[name] != failed.clients[name] })
	}
	wanted := cfg.Agents[changed]
	f.retry(wanted)
	if all, err = f.agents(ctx); err == nil {
		err = f.missing(changed, wanted)
	}
	if err == nil {
		err = f.start.Ready(ctx)
	}
	if err != nil {
		drop()
		return nil, nil, err
	}
	f.start, f.report = before.start, before.report
	return all, drop, nil
}

// chainsOf returns the chains of an agent, by role as the report calls it.
func chainsOf(p config.Persona) map[string][]string {
	return map[string][]string{"ASR": p.ASR, "LLM": p.LLM, "TTS": p.TTS, "VLM": p.Vision, "S2S": p.Realtime}
}

// retry forgets members of an agent's chains that could not be made, and the chains that had to do without them.
func (f *Maker) retry(p config.Persona) {
	for role, names := range chainsOf(p) {
		for _, name := range names {
			if f.made[role+" "+name].err == nil && role != "VLM" {
				continue
			}
			delete(f.made, role+" "+name)
			for key := range f.made {
				if rest, ok := strings.CutPrefix(key, role+" ["); ok && slices.Contains(strings.Split(strings.TrimSuffix(rest, "]"), "\n"), name) {
					delete(f.made, key)
				}
			}
		}
	}
}

// missing says which named members of an agent's chains could not be made.
func (f *Maker) missing(agent string, p config.Persona) error {
	var all []error
	keys := map[string]string{"ASR": "asr", "LLM": "llm", "TTS": "tts", "VLM": "vision", "S2S": "realtime"}
	for _, role := range slices.Sorted(maps.Keys(keys)) {
		for _, name := range chainsOf(p)[role] {
			if err := f.report.left[role+" "+name]; err != nil {
				all = append(all, fmt.Errorf("agents.%s.%s: %s", agent, keys[role], message.Both("agents/no-engine", name, err)))
			}
		}
	}
	return errors.Join(all...)
}

// Sweep lets go of what the settings do not name any more. What a turn still has goes on until it has done with it.
func (f *Maker) Sweep() {
	used, sections := map[string]bool{"rules": true}, map[string]bool{}
	take := func(chains map[string][]string) {
		for role, names := range chains {
			all := f.expand(names, map[string]service.Role{"ASR": service.ASR, "TTS": service.TTS, "S2S": service.Realtime}[role])
			if role == "LLM" || role == "VLM" {
				used[chainKey(role, names)] = true // these are known by what is written
				all = f.expand(names, service.LLM)
			}
			used[chainKey(role, all)] = true
			for _, name := range all {
				used[role+" "+name], sections[name] = true, true
			}
		}
	}
	take(map[string][]string{"ASR": f.cfg.ASR, "LLM": f.cfg.LLM, "TTS": f.cfg.TTS, "VLM": f.cfg.Vision, "S2S": f.cfg.Realtime})
	for _, p := range f.cfg.Agents {
		take(chainsOf(p))
	}
	for key, m := range f.made {
		if !used[key] {
			m.retire()
			delete(f.made, key)
		}
	}
	f.closeClients(func(name string) bool { return !sections[name] })
}

// closeClients lets go of connections to services that nobody uses at this moment.
func (f *Maker) closeClients(of func(name string) bool) {
	maps.DeleteFunc(f.clients, func(name string, c *http.Client) bool {
		if of(name) {
			c.CloseIdleConnections()
		}
		return of(name)
	})
}

// Close closes all that was made.
func (f *Maker) Close() {
	for _, m := range f.made {
		m.close()
	}
	f.closeClients(func(string) bool { return true })
}

// close ends what was made, if it has an end.
func (m made) close() {
	if c, ok := m.what.(interface{ Close() error }); ok {
		c.Close()
	}
}

// retire ends what was made as soon as nobody uses it, if it has an end.
func (m made) retire() {
	if r, ok := m.what.(interface{ Retire() }); ok {
		r.Retire()
	}
}

// ForAgent makes the chains that one agent has for itself, beside a program that runs. The error says for people what
// cannot be made. free closes what was made.
func ForAgent(ctx context.Context, cfg *config.Config, p config.Persona, texts *prompts.Set, log *slog.Logger) (e Chains, free func(), err error) {
	const name = "draft"
	own := *cfg
	own.Agents = map[string]config.Persona{name: p}
	f := New(&own, NewReport(slog.New(slog.DiscardHandler)), log)
	f.brain = rules.New(rules.Options{Prompts: texts.Phrase, Name: cfg.Agent.Name, Zone: cfg.Server.Zone(), ModelConfigured: true})
	ctx, stop := context.WithTimeout(ctx, remakeTime)
	defer stop()
	all, err := f.agents(ctx)
	if err == nil {
		err = f.missing(name, p)
	}
	if err == nil {
		err = f.start.Ready(ctx)
	}
	if err != nil {
		f.Close()
		return e, nil, err
	}
	return all[name], f.Close, nil
}
