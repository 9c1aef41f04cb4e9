// Package engines makes the engines and services that hear, think and speak, of the names in the settings. It is the only
// package that knows providers by name.
package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/local"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/service"
	"xiaozhi/providers/silero"
)

// Set are the providers that all conversations share.
type Set struct {
	VAD    providers.VAD
	Main   Chains // of who has none of their own
	Brain  *rules.Brain
	Models bool // there is a language model beside the rules
	Agents map[string]Chains
}

// Chains are those that an agent has for itself; nil: that of all.
type Chains struct {
	ASR     providers.ASR
	LLM     providers.LLM
	TTS     providers.TTS
	Vision  providers.LLM    // of all, nil: no model understands pictures
	Duplex  providers.Duplex // of all, nil: nothing hears and speaks by itself
	Cascade bool             // nothing hears and speaks by itself, whatever the chain of all is
	Chinese bool             // ASR knows Chinese
}

// All makes all providers that the settings name.
func (f *Maker) All(ctx context.Context, texts *prompts.Set) (e Set, err error) {
	if e.VAD, err = silero.New(); err != nil {
		return e, err
	}
	f.report.Found("VAD", "Silero v6 ("+message.Both("app/embedded")+")")
	if e.Main.ASR, e.Main.Chinese, err = f.recognizers(ctx, f.cfg.ASR); err != nil {
		return e, err
	}
	members, err := f.models(ctx, f.cfg.LLM)
	if err != nil {
		return e, err
	}
	e.Models = len(members) > 0
	e.Brain = rules.New(rules.Options{
		Prompts: texts.Phrase, Name: f.cfg.Agent.Name, Zone: f.cfg.Server.Zone(), ModelConfigured: e.Models,
	})
	f.brain = e.Brain
	if e.Main.LLM, err = f.thinker(f.cfg.LLM, members, e.Brain); err != nil {
		return e, err
	}
	if e.Main.Vision, err = f.Vision(ctx, f.cfg.Vision); err != nil {
		return e, err
	}
	if e.Main.TTS, err = f.voices(ctx, f.cfg.TTS); err != nil {
		return e, err
	}
	if e.Main.Duplex, err = f.Duplex(ctx, f.cfg.Realtime); err != nil {
		return e, err
	}
	if e.Agents, err = f.agents(ctx); err != nil {
		return e, err
	}
	f.tellIdle()
	f.tellLanguages()
	return e, nil
}

// agents makes the chains that agents have for themselves. A chain that several name is
// one, and so is an engine that is in several chains.
func (f *Maker) agents(ctx context.Context) (map[string]Chains, error) {
	all := map[string]Chains{}
	for name, p := range f.cfg.Agents {
		var e Chains
		var members []providers.LLM
		var err, failed error
		if len(p.ASR) > 0 {
			e.ASR, e.Chinese, err = f.recognizers(ctx, p.ASR)
			failed = errors.Join(failed, err)
		}
		if len(p.LLM) > 0 {
			members, err = f.models(ctx, p.LLM)
			failed = errors.Join(failed, err)
			e.LLM, err = f.thinker(p.LLM, members, f.brain)
			failed = errors.Join(failed, err)
		}
		if len(p.TTS) > 0 {
			e.TTS, err = f.voices(ctx, p.TTS)
			failed = errors.Join(failed, err)
		}
		if len(p.Vision) > 0 {
			e.Vision, err = f.Vision(ctx, p.Vision)
			failed = errors.Join(failed, err)
		}
		if len(p.Realtime) > 0 {
			e.Duplex, err = f.Duplex(ctx, p.Realtime)
			e.Cascade = e.Duplex == nil
			failed = errors.Join(failed, err)
		}
		if failed != nil {
			return nil, fmt.Errorf("agents.%s: %w", name, failed)
		}
		all[name] = e
	}
	return all, nil
}

// Maker makes providers of the names in the settings, and owns them. It is for one goroutine at a time.
type Maker struct {
	cfg     *config.Config
	report  *Report
	start   *Start
	log     *slog.Logger
	brain   *rules.Brain
	kinds   []service.Kind
	clients map[string]*http.Client // by section: its roles share their connections
	made    map[string]made         // engines and chains, by role and names
}

// New makes none yet. What will be found is told to found.
func New(cfg *config.Config, found *Report, log *slog.Logger) *Maker {
	return &Maker{cfg: cfg, report: found, start: &Start{log: log}, log: log, kinds: catalog.Kinds(), clients: map[string]*http.Client{}, made: map[string]made{}}
}

// Start returns what is to be done before the engines are used for the first time.
func (f *Maker) Start() *Start { return f.start }

// made is an engine or a chain that was made once, or why it could not be.
type made struct {
	what  any
	about string // of an engine, for people
	err   error
}

// once makes what a role and names stand for, or returns what was made before. again
// says that it was.
func once[T any](f *Maker, key string, make func() (T, error)) (what T, again bool, err error) {
	if m, ok := f.made[key]; ok {
		what, _ = m.what.(T)
		return what, true, m.err
	}
	if what, err = make(); err != nil {
		var none T // a maker may return a nil pointer, which is no nil interface
		what = none
	}
	f.made[key] = made{what: what, err: err}
	return what, false, err
}

// chainKey identifies a chain among those that are built.
func chainKey(role string, names []string) string {
	return role + " [" + strings.Join(names, "\n") + "]"
}

// gather makes the members of a chain that can be made, in order, and notes
// what was found and what was left out. one makes one of them, and says what it is.
func gather[T any](ctx context.Context, f *Maker, role string, names []string, one func(ctx context.Context, name string, p config.Provider) (T, string, error)) []T {
	var all []T
	for _, name := range names {
		var what string
		member, again, err := once(f, role+" "+name, func() (member T, err error) {
			p, err := f.section(ctx, name)
			if err != nil {
				return member, err
			}
			member, what, err = one(ctx, name, p)
			return member, err
		})
		if err == nil {
			all = append(all, member)
		}
		switch {
		case again:
		case err != nil:
			f.report.leftOut(f.cfg, role, name, err)
		default:
			f.found(role, name, what)
		}
	}
	return all
}

// recognizers makes the chain that hears. The second value says whether any
// member knows Chinese.
func (f *Maker) recognizers(ctx context.Context, names []string) (providers.ASR, bool, error) {
	names = f.expand(names, service.ASR)
	heard, again, err := once(f, chainKey("ASR", names), func() (hearing, error) {
		var h hearing
		members := gather(ctx, f, "ASR", names, f.recognizer)
		if len(members) == 0 {
			h.asr = unavailable{"ASR", names}
			return h, nil
		}
		h.chinese = slices.ContainsFunc(names, func(name string) bool { return f.made["ASR "+name].err == nil && f.typeOf(name) != "pocketsphinx" })
		patience := f.patience(func(p config.Provider) time.Duration { return p.Transcript })
		var err error
		h.asr, err = chain.NewASR(members, chain.Options{Log: f.log, HedgeAfter: patience, About: f.about("ASR", names)})
		return h, err
	})
	if err == nil && !again && !heard.chinese {
		f.report.Found("ASR", message.Both("app/no-chinese"))
	}
	return heard.asr, heard.chinese, err
}

// hearing is a chain of recognisers, and whether any of them knows Chinese.
type hearing struct {
	asr     providers.ASR
	chinese bool
}

func (f *Maker) recognizer(_ context.Context, name string, p config.Provider) (providers.ASR, string, error) {
	if p.Type == "pocketsphinx" {
		r, err := pocketsphinx.New(pocketsphinx.Options{Name: name, Decoders: p.Decoders, Log: f.log})
		if err != nil {
			return nil, "", err
		}
		f.start.load(r.Warm)
		return r, message.Both("app/pocketsphinx"), nil
	}
	return ofKind(f, service.ASR, name, p, func(k service.Kind) func(service.Section) (providers.ASR, error) { return k.ASR })
}

// unfit says that a type cannot do a role.
func unfit(r service.Role, kind string) string {
	switch r {
	case service.TTS:
		return message.Both("app/not-tts", kind)
	case service.Realtime:
		return message.Both("app/not-realtime", kind)
	default:
		return message.Both("app/not-asr", kind)
	}
}

// ofKind makes a provider of the kind that a section has. of gives the maker of the role.
func ofKind[T any](f *Maker, r service.Role, name string, p config.Provider, of func(service.Kind) func(service.Section) (T, error)) (made T, what string, err error) {
	k, ok := catalog.Find(f.kinds, p.Type)
	if !ok || of(k) == nil {
		return made, "", errors.New(unfit(r, p.Type))
	}
	s, err := f.settings(name, p)
	if err != nil {
		return made, "", err
	}
	if made, err = of(k)(s); err != nil {
		return made, "", err
	}
	f.warm(k, made)
	return made, describe(k, s, r, made), nil
}

// typeOf is the type of a section, or a name that needs none.
func (f *Maker) typeOf(name string) string {
	if p, section := f.cfg.Providers[name]; section {
		return p.Type
	}
	return name
}

// isRules reports whether a name stands for the rules brain: its own name, or
// that of a section of its type.
func (f *Maker) isRules(name string) bool { return f.typeOf(name) == "rules" }

// models makes the members that are language models.
func (f *Maker) models(ctx context.Context, names []string) ([]providers.LLM, error) {
	var members []providers.LLM
	for _, name := range f.expand(names, service.LLM) {
		if f.isRules(name) {
			continue
		}
		var what string
		var wrong error
		m, again, err := once(f, "LLM "+name, func() (providers.LLM, error) {
			p, err := f.section(ctx, name)
			if err != nil {
				return nil, err
			}
			if k, ok := catalog.Find(f.kinds, p.Type); !ok || k.LLM == nil {
				wrong = errors.New(message.Both("app/not-llm", name, p.Type))
				return nil, wrong
			}
			m, says, err := ofKind(f, service.LLM, name, p, func(k service.Kind) func(service.Section) (providers.LLM, error) { return k.LLM })
			what = says
			return m, err
		})
		if wrong != nil {
			return nil, wrong
		}
		if err == nil {
			members = append(members, m)
		}
		switch {
		case again:
		case err == nil:
			f.found("LLM", name, what)
		case slices.Contains(names, name):
			f.report.leftOut(f.cfg, "LLM", name, err)
		}
	}
	return members, nil
}

// thinker makes the chain of the models and, where the config names it, the
// rules brain.
func (f *Maker) thinker(names []string, models []providers.LLM, brain *rules.Brain) (providers.LLM, error) {
	llm, _, err := once(f, chainKey("LLM", names), func() (providers.LLM, error) {
		members := slices.Clone(models)
		if slices.ContainsFunc(names, f.isRules) || len(models) == 0 {
			members = append(members, brain)
			what := message.Both("app/rules")
			if len(models) > 0 {
				what = message.Both("app/rules-last")
			}
			f.reportRules(what)
		}
		patience := f.patience(func(p config.Provider) time.Duration { return p.FirstToken })
		about := f.about("LLM", f.expand(names, service.LLM))
		about[brain.Name()] = message.Both("app/rules")
		return chain.NewLLM(members, chain.Options{Log: f.log, HedgeAfter: patience, About: about, LastResort: []string{brain.Name()}})
	})
	return llm, err
}

// reportRules says once what the rules are for.
func (f *Maker) reportRules(what string) {
	if _, again, _ := once(f, "rules", func() (string, error) { return what, nil }); !again {
		f.report.Found("LLM", what)
	}
}

// voices makes the chain that speaks.
func (f *Maker) voices(ctx context.Context, names []string) (providers.TTS, error) {
	names = f.expand(names, service.TTS)
	tts, _, err := once(f, chainKey("TTS", names), func() (providers.TTS, error) {
		members := gather(ctx, f, "TTS", names, f.voice)
		if len(members) == 0 {
			f.report.Found("TTS", message.Both("app/no-voice"))
			return unavailable{"TTS", names}, nil
		}
		patience := f.patience(func(p config.Provider) time.Duration { return p.FirstSound })
		return chain.NewTTS(members, chain.Options{Log: f.log, HedgeAfter: patience, About: f.about("TTS", names)})
	})
	return tts, err
}

// patience returns one time of all sections that set it, by their names.
func (f *Maker) patience(of func(config.Provider) time.Duration) map[string]time.Duration {
	all := map[string]time.Duration{}
	for name, p := range f.cfg.Providers {
		if d := of(p); d > 0 {
			all[name] = d
		}
	}
	return all
}

func (f *Maker) voice(ctx context.Context, name string, p config.Provider) (providers.TTS, string, error) {
	if p.Type == "local" {
		s, err := local.New(ctx, local.Options{Name: name, EnglishVoice: p.Voice.For("en"), Log: f.log})
		if err != nil {
			return nil, "", err
		}
		if len(s.Found()) == 0 {
			return nil, "", errors.New(message.Both("app/no-voices"))
		}
		return s, strings.Join(s.Found(), ", "), nil
	}
	return ofKind(f, service.TTS, name, p, func(k service.Kind) func(service.Section) (providers.TTS, error) { return k.TTS })
}
