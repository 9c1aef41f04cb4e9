package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/local"
	"xiaozhi/providers/openai"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/silero"
)

// engines are the providers that all conversations share.
type engines struct {
	vad     providers.VAD
	asr     providers.ASR
	llm     providers.LLM
	tts     providers.TTS
	vision  providers.LLM // nil: no model understands pictures
	brain   *rules.Brain
	chinese bool // a recogniser knows Chinese
	models  bool // there is a language model beside the rules
}

// findEngines makes all providers that the settings name.
func findEngines(ctx context.Context, cfg *config.Config, texts *prompts.Set, found *report, life *lifecycle, log *slog.Logger) (e engines, err error) {
	if e.vad, err = silero.New(); err != nil {
		return e, err
	}
	found.found("VAD", "Silero v6 ("+message.Both("app/embedded")+")")
	f := &resolver{cfg: cfg, report: found, life: life, log: log, clients: map[string]*http.Client{}}
	if e.asr, e.chinese, err = f.recognizers(ctx); err != nil {
		return e, err
	}
	members, err := f.models(ctx)
	if err != nil {
		return e, err
	}
	e.models = len(members) > 0
	e.brain = rules.New(rules.Options{
		Prompts: texts.Phrase, Name: cfg.Agent.Name, Zone: cfg.Server.Zone(), ModelConfigured: e.models,
	})
	if e.llm, err = f.thinker(members, e.brain); err != nil {
		return e, err
	}
	if e.vision, err = f.visionModels(ctx); err != nil {
		return e, err
	}
	e.tts, err = f.voices(ctx)
	return e, err
}

// resolver makes providers of the names in the settings.
type resolver struct {
	cfg     *config.Config
	report  *report
	life    *lifecycle
	log     *slog.Logger
	clients map[string]*http.Client // by section: its roles share their connections
}

// gather makes the members of a chain that can be made, in order, and notes
// what was found and what was left out. one makes one of them, and says what it is.
func gather[T any](ctx context.Context, f *resolver, role string, names []string, one func(name string, p config.Provider) (T, string, error)) []T {
	var all []T
	for _, name := range names {
		p, err := f.section(ctx, name)
		if err != nil {
			f.report.missing(role, name, err)
			continue
		}
		member, what, err := one(name, p)
		if err != nil {
			f.report.missing(role, name, err)
			continue
		}
		all = append(all, member)
		f.report.found(role, name+": "+what)
	}
	return all
}

// recognizers makes the chain that hears. The second value says whether any
// member knows Chinese.
func (f *resolver) recognizers(ctx context.Context) (providers.ASR, bool, error) {
	chinese := false
	members := gather(ctx, f, "ASR", f.cfg.ASR, func(name string, p config.Provider) (providers.ASR, string, error) {
		member, what, err := f.recognizer(name, p)
		chinese = chinese || err == nil && p.Type != "pocketsphinx"
		return member, what, err
	})
	if !chinese {
		f.report.found("ASR", message.Both("app/no-chinese"))
	}
	if len(members) == 0 {
		return unavailable{"ASR", f.cfg.ASR}, chinese, nil
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.Transcript })
	asr, err := chain.NewASR(members, chain.Options{Log: f.log, HedgeAfter: patience})
	return asr, chinese, err
}

func (f *resolver) recognizer(name string, p config.Provider) (providers.ASR, string, error) {
	switch p.Type {
	case "pocketsphinx":
		r, err := pocketsphinx.New(pocketsphinx.Options{Name: name, Decoders: p.Decoders, Log: f.log})
		if err != nil {
			return nil, "", err
		}
		f.life.load(r.Warm)
		f.life.atEnd(func() { r.Close() })
		return r, message.Both("app/pocketsphinx"), nil
	case "openai":
		o := f.openai(name, p)
		if o.ASRModel == "" && o.Model == "" {
			o.ASRModel = defaultASRModel
		}
		r, err := openai.NewASR(o)
		f.warm(r, err)
		return r, describe(o.BaseURL, cmp.Or(o.ASRModel, o.Model)), err
	}
	return nil, "", errors.New(message.Both("app/not-asr", p.Type))
}

// isRules reports whether a name stands for the rules brain: its own name, or
// that of a section of its type.
func (f *resolver) isRules(name string) bool {
	p, section := f.cfg.Providers[name]
	return section && p.Type == "rules" || !section && name == "rules"
}

// models makes the members that are language models.
func (f *resolver) models(ctx context.Context) ([]providers.LLM, error) {
	var members []providers.LLM
	for _, name := range f.modelNames() {
		if f.isRules(name) {
			continue
		}
		p, err := f.section(ctx, name)
		if err != nil {
			if slices.Contains(f.cfg.LLM, name) {
				f.report.missing("LLM", name, err)
			}
			continue
		}
		if p.Type != "openai" {
			return nil, errors.New(message.Both("app/not-llm", name, p.Type))
		}
		o := f.openai(name, p)
		m, err := openai.NewLLM(o)
		if err != nil {
			f.report.missing("LLM", name, err)
			continue
		}
		f.warm(m, nil)
		members = append(members, m)
		f.report.found("LLM", name+": "+describe(o.BaseURL, o.Model))
	}
	return members, nil
}

// modelNames is the chain of llm with all that auto stands for.
func (f *resolver) modelNames() []string {
	names := f.cfg.LLM
	if i := slices.Index(names, "auto"); i >= 0 {
		auto := []string{"openai", "deepseek", "dashscope", "ollama"}
		auto = slices.DeleteFunc(auto, func(n string) bool { return slices.Contains(names, n) })
		names = slices.Replace(slices.Clone(names), i, i+1, auto...)
	}
	return names
}

// thinker makes the chain of the models and, where the config names it, the
// rules brain.
func (f *resolver) thinker(models []providers.LLM, brain *rules.Brain) (providers.LLM, error) {
	members := slices.Clone(models)
	if slices.ContainsFunc(f.cfg.LLM, f.isRules) || len(models) == 0 {
		members = append(members, brain)
		what := message.Both("app/rules")
		if len(models) > 0 {
			what = message.Both("app/rules-last")
		}
		f.report.found("LLM", what)
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.FirstToken })
	return chain.NewLLM(members, chain.Options{Log: f.log, HedgeAfter: patience, LastResort: []string{brain.Name()}})
}

// voices makes the chain that speaks.
func (f *resolver) voices(ctx context.Context) (providers.TTS, error) {
	members := gather(ctx, f, "TTS", f.cfg.TTS, func(name string, p config.Provider) (providers.TTS, string, error) {
		return f.voice(ctx, name, p)
	})
	if len(members) == 0 {
		return unavailable{"TTS", f.cfg.TTS}, nil
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.FirstSound })
	return chain.NewTTS(members, chain.Options{Log: f.log, HedgeAfter: patience})
}

// patience returns one time of all sections that set it, by their names.
func (f *resolver) patience(of func(config.Provider) time.Duration) map[string]time.Duration {
	all := map[string]time.Duration{}
	for name, p := range f.cfg.Providers {
		if d := of(p); d > 0 {
			all[name] = d
		}
	}
	return all
}

func (f *resolver) voice(ctx context.Context, name string, p config.Provider) (providers.TTS, string, error) {
	switch p.Type {
	case "local":
		s, err := local.New(ctx, local.Options{Name: name, EnglishVoice: p.Voice.For("en"), Log: f.log})
		if err != nil {
			return nil, "", err
		}
		if len(s.Found()) == 0 {
			return nil, "", errors.New(message.Both("app/no-voices"))
		}
		return s, strings.Join(s.Found(), ", "), nil
	case "openai":
		o := f.openai(name, p)
		if o.TTSModel == "" && o.Model == "" {
			o.TTSModel = defaultTTSModel
		}
		s, err := openai.NewTTS(o)
		f.warm(s, err)
		return s, describe(o.BaseURL, cmp.Or(o.TTSModel, o.Model)), err
	}
	return nil, "", errors.New(message.Both("app/not-tts", p.Type))
}

// unavailable is the provider of a chain of which no member could be made: every use
// fails with an error that names the chain.
type unavailable struct {
	role  string
	names []string
}

func (u unavailable) err(op string) error {
	return &providers.Error{
		Provider: "none", Op: op, Kind: providers.Unavailable,
		Err: fmt.Errorf("no %s of [%s] could be started; the start log says why", u.role, strings.Join(u.names, " ")),
	}
}

// Name is "none".
func (u unavailable) Name() string { return "none" }

// Open always fails.
func (u unavailable) Open(context.Context, providers.ASRRequest) (providers.ASRStream, error) {
	return nil, u.err("recognize")
}

// Synthesize always fails.
func (u unavailable) Synthesize(context.Context, providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) { yield(providers.Sound{}, u.err("speak")) }
}
