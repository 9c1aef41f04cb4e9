// Package engines makes the engines and services that hear, think and speak, of the names in the settings. It is the only
// package that knows providers by name.
package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Set are the providers that all conversations share, as the settings name them. It does not change.
type Set struct {
	VAD    providers.VAD
	Main   Chains // of who has none of their own
	Brain  *rules.Brain
	Models bool // there is a language model beside the rules
	Agents map[string]Chains
	Left   map[string]error // why what is named could not be made, by role and name

	held *batch
}

// Chains are those that an agent has for itself; nil: that of all.
type Chains struct {
	ASR        providers.ASR
	LLM        providers.LLM
	TTS        providers.TTS
	Vision     providers.LLM        // of all, nil: no model understands pictures
	Duplex     providers.Duplex     // of all, nil: nothing hears and speaks by itself
	Embed      providers.Embedder   // of all, nil: nothing makes vectors
	Voiceprint providers.Voiceprint // of all; nil: nobody is told apart by the voice
	Cascade    bool                 // nothing hears and speaks by itself, whatever the chain of all is
	Chinese    bool                 // ASR knows Chinese
}

// Make makes all providers that settings name, beside those there are: what is in another set as well, with the same
// settings, is the same. found is told what there is. The set must be released.
func (f *Maker) Make(ctx context.Context, cfg *config.Config, texts *prompts.Set, found *Report) (Set, error) {
	return f.make(ctx, cfg, texts, found, func(string) bool { return false })
}

// make makes a set. retry says of which engines that could not be made it is tried again, by role and name.
func (f *Maker) make(ctx context.Context, cfg *config.Config, texts *prompts.Set, found *Report, retry func(key string) bool) (Set, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.batch(cfg, found)
	b.retry = retry
	e, err := b.all(ctx, texts)
	if err != nil {
		b.release()
		return Set{}, err
	}
	e.Left, e.held = found.left, b
	return e, nil
}

// all makes all that the settings name.
func (f *batch) all(ctx context.Context, texts *prompts.Set) (e Set, err error) {
	if e.VAD, _, err = once(f, "VAD", "", func(*made) (providers.VAD, error) { return silero.New() }); err != nil {
		return e, err
	}
	f.report.Found("VAD", "Silero v6 ("+message.Both("app/embedded")+")")
	if e.Main.ASR, e.Main.Chinese, err = f.recognizers(ctx, f.cfg.ASR); err != nil {
		return e, err
	}
	models, of, err := f.models(ctx, f.cfg.LLM)
	if err != nil {
		return e, err
	}
	e.Models = len(models) > 0
	if e.Brain, err = f.think(texts, e.Models); err != nil {
		return e, err
	}
	if e.Main.LLM, err = f.thinker(f.cfg.LLM, models, of); err != nil {
		return e, err
	}
	if e.Main.Vision, err = f.vision(ctx, f.cfg.Vision); err != nil {
		return e, err
	}
	if e.Main.TTS, err = f.voices(ctx, f.cfg.TTS); err != nil {
		return e, err
	}
	if e.Main.Duplex, err = f.duplexes(ctx, f.cfg.Realtime); err != nil {
		return e, err
	}
	if e.Main.Embed, err = f.embedder(ctx, f.cfg.Embed); err != nil {
		return e, err
	}
	if e.Main.Voiceprint, err = f.voiceprints(ctx); err != nil {
		return e, err
	}
	if e.Agents, err = f.agents(ctx); err != nil {
		return e, err
	}
	f.tellIdle()
	f.tellLanguages()
	return e, nil
}

// think makes the rules that answer without a model, or beside models.
func (f *batch) think(texts *prompts.Set, models bool) (*rules.Brain, error) {
	key := fmt.Sprintf("rules %q %v %t", f.cfg.Agent.Name, f.cfg.Server.Zone(), models)
	var err error
	f.brain, _, err = once(f, key, "", func(*made) (*rules.Brain, error) {
		return rules.New(rules.Options{Prompts: texts.Phrase, Name: f.cfg.Agent.Name, Zone: f.cfg.Server.Zone(), ModelConfigured: models}), nil
	})
	return f.brain, err
}

// agents makes the chains that agents have for themselves. A chain that several name is
// one, and so is an engine that is in several chains.
func (f *batch) agents(ctx context.Context) (map[string]Chains, error) {
	all := map[string]Chains{}
	for name, p := range f.cfg.Agents {
		var e Chains
		var err, failed error
		if len(p.ASR) > 0 {
			e.ASR, e.Chinese, err = f.recognizers(ctx, p.ASR)
			failed = errors.Join(failed, err)
		}
		if len(p.LLM) > 0 {
			models, of, wrong := f.models(ctx, p.LLM)
			if err = wrong; err == nil {
				e.LLM, err = f.thinker(p.LLM, models, of)
			}
			failed = errors.Join(failed, err)
		}
		if len(p.TTS) > 0 {
			e.TTS, err = f.voices(ctx, p.TTS)
			failed = errors.Join(failed, err)
		}
		if len(p.Vision) > 0 {
			e.Vision, err = f.vision(ctx, p.Vision)
			failed = errors.Join(failed, err)
		}
		if len(p.Realtime) > 0 {
			e.Duplex, err = f.duplexes(ctx, p.Realtime)
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

// gather makes the members of a chain that can be made, in order, and notes what was found, and what was left out of those
// that tells names. one makes one of them, and says what it is.
func gather[T any](ctx context.Context, f *batch, role string, names []string, tells func(name string) bool, one func(ctx context.Context, name string, p config.Provider) (T, string, error)) (all []T, of members) {
	for _, name := range names {
		key := role + " " + name
		member, again, err := once(f, key, name, func(m *made) (member T, err error) {
			p, err := f.section(ctx, name)
			if err != nil {
				return member, err
			}
			member, m.about, err = one(ctx, name, p)
			return member, err
		})
		m := f.held[key]
		if err == nil {
			all, of = append(all, member), append(of, m)
			m.name = name
		}
		switch {
		case again:
		case err == nil:
			f.report.Found(role, name+": "+m.about)
		case tells(name):
			f.report.leftOut(f.cfg, role, name, err)
		}
	}
	return all, of
}

// everyone tells of all that was left out.
func everyone(string) bool { return true }

// members are those of a chain.
type members []*made

// key identifies the chain of these members among those that are there: it is the same as long as they and what is said of
// them are.
func (of members) key(role string, patience map[string]time.Duration, more ...any) string {
	key := role + " chain"
	for _, m := range of {
		key += fmt.Sprintf(" %d/%v", m.id, patience[m.name])
	}
	return key + fmt.Sprint(more...)
}

// options are those of the chain.
func (of members) options(log *slog.Logger, patience map[string]time.Duration) chain.Options {
	o := chain.Options{Log: log, HedgeAfter: map[string]time.Duration{}, About: map[string]string{}, Breakers: map[string]*chain.Breaker{}}
	for _, m := range of {
		if d := patience[m.name]; d > 0 {
			o.HedgeAfter[m.name] = d
		}
		o.About[m.name], o.Breakers[m.name] = m.about, &m.breaker
	}
	return o
}

// recognizers makes the chain that hears. The second value says whether any
// member knows Chinese.
func (f *batch) recognizers(ctx context.Context, names []string) (providers.ASR, bool, error) {
	names = f.expand(names, service.ASR)
	all, of := gather(ctx, f, "ASR", names, everyone, f.recognizer)
	patience := f.patience(func(p config.Provider) time.Duration { return p.Transcript })
	chinese := slices.ContainsFunc(of, func(m *made) bool { return f.typeOf(m.name) != "pocketsphinx" })
	if len(all) == 0 {
		f.tellOnce("ASR", strings.Join(names, " "), message.Both("app/no-chinese"))
		return unavailable{"ASR", names}, false, nil
	}
	asr, again, err := once(f, of.key("ASR", patience), "", func(*made) (providers.ASR, error) {
		return chain.NewASR(all, of.options(f.log, patience))
	})
	if err == nil && !again && !chinese {
		f.report.Found("ASR", message.Both("app/no-chinese"))
	}
	return asr, chinese, err
}

func (f *batch) recognizer(_ context.Context, name string, p config.Provider) (providers.ASR, string, error) {
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
	case service.Embed:
		return message.Both("app/not-embed", kind)
	case service.Voiceprint:
		return message.Both("app/not-voiceprint", kind)
	default:
		return message.Both("app/not-asr", kind)
	}
}

// ofKind makes a provider of the kind that a section has. of gives the maker of the role.
func ofKind[T any](f *batch, r service.Role, name string, p config.Provider, of func(service.Kind) func(service.Section) (T, error)) (made T, what string, err error) {
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
func (f *batch) typeOf(name string) string {
	if p, section := f.cfg.Providers[name]; section {
		return p.Type
	}
	return name
}

// isRules reports whether a name stands for the rules brain: its own name, or
// that of a section of its type.
func (f *batch) isRules(name string) bool { return f.typeOf(name) == "rules" }

// models makes the members that are language models.
func (f *batch) models(ctx context.Context, names []string) (all []providers.LLM, of members, err error) {
	expanded := slices.DeleteFunc(slices.Clone(f.expand(names, service.LLM)), f.isRules)
	written := func(name string) bool { return slices.Contains(names, name) }
	all, of = gather(ctx, f, "LLM", expanded, written, func(_ context.Context, name string, p config.Provider) (providers.LLM, string, error) {
		if k, ok := catalog.Find(f.kinds, p.Type); !ok || k.LLM == nil {
			err = errors.New(message.Both("app/not-llm", name, p.Type))
			return nil, "", err
		}
		return ofKind(f, service.LLM, name, p, func(k service.Kind) func(service.Section) (providers.LLM, error) { return k.LLM })
	})
	return all, of, err
}

// thinker makes the chain of the models and, where the config names it, the
// rules brain.
func (f *batch) thinker(names []string, models []providers.LLM, of members) (providers.LLM, error) {
	all := slices.Clone(models)
	ruled := slices.ContainsFunc(names, f.isRules) || len(models) == 0
	if ruled {
		all = append(all, f.brain)
		what := message.Both("app/rules")
		if len(models) > 0 {
			what = message.Both("app/rules-last")
		}
		f.tellOnce("LLM", "rules", what)
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.FirstToken })
	brain := ""
	if ruled {
		brain = fmt.Sprintf(" %p", f.brain)
	}
	llm, _, err := once(f, of.key("LLM", patience, brain), "", func(*made) (providers.LLM, error) {
		o := of.options(f.log, patience)
		o.About[f.brain.Name()], o.LastResort = message.Both("app/rules"), []string{f.brain.Name()}
		return chain.NewLLM(all, o)
	})
	return llm, err
}

// tellOnce says once what is told of something.
func (f *batch) tellOnce(role, of, what string) {
	if !f.told[role+" "+of] {
		f.told[role+" "+of] = true
		f.report.Found(role, what)
	}
}

// voices makes the chain that speaks.
func (f *batch) voices(ctx context.Context, names []string) (providers.TTS, error) {
	names = f.expand(names, service.TTS)
	all, of := gather(ctx, f, "TTS", names, everyone, f.voice)
	if len(all) == 0 {
		f.tellOnce("TTS", strings.Join(names, " "), message.Both("app/no-voice"))
		return unavailable{"TTS", names}, nil
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.FirstSound })
	tts, _, err := once(f, of.key("TTS", patience), "", func(*made) (providers.TTS, error) {
		return chain.NewTTS(all, of.options(f.log, patience))
	})
	return tts, err
}

// patience returns one time of the sections of members that set it, by their names.
func (f *batch) patience(of func(config.Provider) time.Duration) map[string]time.Duration {
	all := map[string]time.Duration{}
	for name, p := range f.cfg.Providers {
		if d := of(p); d > 0 {
			all[name] = d
		}
	}
	return all
}

func (f *batch) voice(ctx context.Context, name string, p config.Provider) (providers.TTS, string, error) {
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
