package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio"
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

// service is a language model service that is known without a section.
type service struct {
	name, key, base, model string // key: the variable that holds the key
}

// services lists the services that auto picks up from the environment, in this order.
func services() []service {
	return []service{
		{"openai", "OPENAI_API_KEY", openai.DefaultBaseURL, "gpt-4o-mini"},
		{"deepseek", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-chat"},
		{"dashscope", "DASHSCOPE_API_KEY", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen-flash"},
	}
}

const (
	ollamaBase = "http://127.0.0.1:11434"
	ollamaWait = 500 * time.Millisecond // it is on this machine, or not there
)

// The models of roles for which none is set.
const (
	defaultASRModel = "whisper-1"
	defaultTTSModel = "tts-1"
)

// noKey returns the error for a service without its key, which is left out.
func noKey(name string) error { return errors.New(message.Both("app/no-key") + ": " + name) }

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
	f := &resolver{cfg: cfg, report: found, life: life, log: log}
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

// section is the settings under a name: those of the config, or those of a
// service that needs no section.
func (f *resolver) section(ctx context.Context, name string) (config.Provider, error) {
	if p, ok := f.cfg.Providers[name]; ok {
		if len(p.MissingEnv) > 0 {
			return p, noKey("$" + strings.Join(p.MissingEnv, ", $"))
		}
		if p.Type == "openai" && p.BaseURL == "" && p.APIKey == "" && len(p.Headers) == 0 {
			return p, noKey("providers." + name + ".api_key") // a service at another address may need none
		}
		return p, nil
	}
	for _, s := range services() {
		if s.name != name {
			continue
		}
		key := os.Getenv(s.key)
		if key == "" {
			return config.Provider{}, noKey("$" + s.key)
		}
		upper := strings.ToUpper(name)
		return config.Provider{
			Type: "openai", APIKey: providers.Secret(key),
			BaseURL: envOr(upper+"_BASE_URL", s.base), Model: envOr(upper+"_MODEL", s.model),
			ASRModel: defaultASRModel, TTSModel: defaultTTSModel, // the model that thinks can neither hear nor speak
		}, nil
	}
	if name == "ollama" {
		ctx, cancel := context.WithTimeout(ctx, ollamaWait)
		defer cancel()
		model, err := openai.FindOllama(ctx, ollamaBase)
		return config.Provider{Type: "openai", BaseURL: ollamaBase + "/v1", Model: model}, err
	}
	return config.Provider{Type: name}, nil
}

func envOr(key, fallback string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return fallback
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
		return nothing{"ASR", f.cfg.ASR}, chinese, nil
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.Transcript })
	asr, err := chain.NewASR(members, chain.Options{Log: f.log, Patience: patience})
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
		return r, describe(o.BaseURL, first(o.ASRModel, o.Model)), err
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
	return chain.NewLLM(members, chain.Options{Log: f.log, Patience: patience, LastResort: []string{brain.Name()}})
}

// voices makes the chain that speaks.
func (f *resolver) voices(ctx context.Context) (providers.TTS, error) {
	members := gather(ctx, f, "TTS", f.cfg.TTS, func(name string, p config.Provider) (providers.TTS, string, error) {
		return f.voice(ctx, name, p)
	})
	if len(members) == 0 {
		return nothing{"TTS", f.cfg.TTS}, nil
	}
	patience := f.patience(func(p config.Provider) time.Duration { return p.FirstSound })
	return chain.NewTTS(members, chain.Options{Log: f.log, Patience: patience})
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
		return s, describe(o.BaseURL, first(o.TTSModel, o.Model)), err
	}
	return nil, "", errors.New(message.Both("app/not-tts", p.Type))
}

// openai are the options of one section.
func (f *resolver) openai(name string, p config.Provider) openai.Options {
	o := openai.Options{
		Name: name, BaseURL: first(p.BaseURL, openai.DefaultBaseURL), APIKey: p.APIKey,
		Model: p.Model, ASRModel: p.ASRModel, TTSModel: p.TTSModel,
		Voice: p.Voice.For(""), Voices: p.Voice, Format: p.Format, Rate: p.SampleRate,
		MaxTokens: p.MaxTokens, Extra: p.Extra, Headers: p.Headers,
	}
	if p.Temp != nil {
		t := float32(*p.Temp)
		o.Temperature = &t
	}
	if p.Timeout > 0 {
		o.Timeouts = openai.Timeouts{FirstToken: p.Timeout, Transcribe: p.Timeout, FirstSound: p.Timeout}
	}
	o.HTTPClient = f.client(name, o)
	return o
}

// client is the section's own.
func (f *resolver) client(name string, o openai.Options) *http.Client {
	if c, ok := f.clients[name]; ok {
		return c
	}
	c, err := openai.NewHTTPClient(o)
	if err != nil {
		return nil // the provider makes its own, and says what is wrong
	}
	if f.clients == nil {
		f.clients = map[string]*http.Client{}
	}
	f.clients[name] = c
	f.life.atEnd(c.CloseIdleConnections)
	return c
}

// warm lets the start open a connection to a service.
func (f *resolver) warm(w providers.Warmer, err error) {
	if err == nil {
		f.life.dial(w.Warm)
	}
}

// describe names a service for people, without what may be secret in its address.
func describe(base, model string) string {
	u, err := url.Parse(base)
	if err != nil {
		return model
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return model + " at " + u.String()
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// endpointOptions are the settings of hearing.
func endpointOptions(v config.Voice) audio.EndpointOptions {
	return audio.EndpointOptions{
		Start: float32(v.VAD.Start), End: float32(v.VAD.End),
		PreRoll: v.Endpointing.PreRoll, MinSpeech: v.Endpointing.MinSpeech, Trigger: v.Endpointing.Trigger,
		Commit: v.Endpointing.Commit, MaxSpeech: v.Endpointing.MaxSpeech,
	}
}

// orNever is a setting of which zero means never, for options of which zero
// means the default.
func orNever[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// stopWords are the configured ones and those that every user expects.
func stopWords(c config.Agent) []string { return append(agent.StopWords(), c.StopWords...) }

// leadFrames is the lead in frames of the reply.
func leadFrames(v config.Voice) int {
	return int((v.Pacing.Lead + audio.Reply.Frame/2) / audio.Reply.Frame)
}

// nothing stands where no member of a chain could be made: every use fails, and
// so is heard and named.
type nothing struct {
	role  string
	names []string
}

func (n nothing) err(op string) error {
	return &providers.Error{
		Provider: "none", Op: op, Kind: providers.Unavailable,
		Err: fmt.Errorf("no %s of [%s] could be started; the start log says why", n.role, strings.Join(n.names, " ")),
	}
}

// Name is "none".
func (n nothing) Name() string { return "none" }

// Open always fails.
func (n nothing) Open(context.Context, providers.ASRRequest) (providers.ASRStream, error) {
	return nil, n.err("recognize")
}

// Synthesize always fails.
func (n nothing) Synthesize(context.Context, providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) { yield(providers.Sound{}, n.err("speak")) }
}
