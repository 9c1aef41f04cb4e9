package engines

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/openai"
	"xiaozhi/providers/service"
)

const (
	ollamaBase = "http://127.0.0.1:11434"
	ollamaWait = 500 * time.Millisecond // it is on this machine, or not there
)

// noKeyError says that a service has not got its key, which is no mistake: it is left out.
type noKeyError struct{ name string }

// Error names what is to be set, in both languages.
func (e noKeyError) Error() string { return message.Both("app/no-key") + ": " + e.name }

// noKey returns the error for a service without its key, which is left out.
func noKey(name string) error { return noKeyError{name} }

// section is the settings under a name: those of the config, or those of a
// service that needs no section.
func (f *batch) section(ctx context.Context, name string) (config.Provider, error) {
	p, written := f.cfg.Providers[name]
	if written && len(p.MissingEnv) > 0 {
		return p, noKey("$" + strings.Join(p.MissingEnv, ", $"))
	}
	if name == "ollama" && !written {
		ctx, cancel := context.WithTimeout(ctx, ollamaWait)
		defer cancel()
		model, err := openai.FindOllama(ctx, ollamaBase)
		return config.Provider{Type: "ollama", BaseURL: ollamaBase, Model: model}, err
	}
	if !written {
		p = config.Provider{Type: name}
	}
	k, known := catalog.Find(f.kinds, p.Type)
	if !known {
		return p, nil
	}
	if !written {
		upper := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		p.BaseURL, p.Model = os.Getenv(upper+"_BASE_URL"), os.Getenv(upper+"_MODEL")
	}
	if own := p.BaseURL != "" || len(p.Headers) > 0; !written || !own { // a key of the environment goes to its own service only
		fill(&p, k)
	}
	if written && (p.BaseURL != "" || len(p.Headers) > 0) {
		return p, nil // a service at another address may need no key
	}
	for _, field := range k.Needs {
		if *fields(&p)[field] == "" {
			if !written {
				return p, noKey("$" + strings.Join(variables(k), ", $"))
			}
			return p, noKey("providers." + name + "." + string(field))
		}
	}
	return p, nil
}

// fields returns where a section keeps its keys.
func fields(p *config.Provider) map[service.Field]*string {
	return map[service.Field]*string{service.Key: (*string)(&p.APIKey), service.ID: &p.AppID, service.Secret: (*string)(&p.APISecret)}
}

// fill takes the keys that a section does not have from the environment.
func fill(p *config.Provider, k service.Kind) {
	at := fields(p)
	for _, e := range k.Env {
		if *at[e.Field] == "" {
			*at[e.Field] = os.Getenv(e.Name)
		}
	}
}

// variables are those of the environment that a kind cannot do without.
func variables(k service.Kind) []string {
	var out []string
	for _, e := range k.Env {
		if slices.Contains(k.Needs, e.Field) {
			out = append(out, e.Name)
		}
	}
	return out
}

// expand replaces auto in a chain by all that it stands for: the sections that no chain
// names and that can do the role, then the services whose keys are in the environment, then
// the engines that are on this machine, and Ollama.
func (f *batch) expand(names []string, role service.Role) []string {
	if config.IsNone(names) {
		return nil
	}
	i := slices.Index(names, "auto")
	if i < 0 {
		return names
	}
	var auto, keys []string
	for _, name := range slices.Sorted(maps.Keys(f.cfg.Providers)) {
		if k, ok := catalog.Find(f.kinds, f.cfg.Providers[name].Type); ok && !f.cfg.Names(name) && slices.Contains(k.Roles(), role) {
			auto = append(auto, name)
		}
	}
	for _, k := range f.kinds {
		needed := variables(k)
		missing := slices.ContainsFunc(needed, func(v string) bool { return os.Getenv(v) == "" })
		known := slices.ContainsFunc(needed, func(v string) bool { return slices.Contains(keys, v) }) // under another name
		if len(needed) == 0 || missing || known || elsewhere(f.kinds, k, role) || !slices.Contains(k.Roles(), role) {
			continue
		}
		keys = append(keys, needed...)
		auto = append(auto, k.Type)
	}
	for _, k := range f.kinds { // what is here beside what is far away
		if k.Here != nil && slices.Contains(k.Roles(), role) && k.Here(service.Section{Settings: ownSettings(f.cfg, k, config.Provider{})}, role) {
			auto = append(auto, k.Type)
		}
	}
	if role == service.LLM || role == service.Embed {
		auto = append(auto, "ollama")
	}
	auto = slices.DeleteFunc(auto, func(n string) bool { return slices.Contains(names, n) })
	return slices.Replace(slices.Clone(names), i, i+1, auto...)
}

// elsewhere reports whether the key of a kind belongs to another address than that at which it does a role: one that the
// environment names for the models of this kind, or of another one with the same key.
func elsewhere(kinds []service.Kind, k service.Kind, role service.Role) bool {
	if role == service.LLM {
		return false
	}
	return slices.ContainsFunc(kinds, func(o service.Kind) bool {
		if o.Type != k.Type && (role != service.Realtime || !slices.ContainsFunc(variables(o), func(v string) bool { return slices.Contains(variables(k), v) })) {
			return false
		}
		own := o.Type == k.Type && k.LLM == nil // it was set for this role
		return !own && os.Getenv(strings.ToUpper(strings.ReplaceAll(o.Type, "-", "_"))+"_BASE_URL") != ""
	})
}

// settings makes what a kind reads of a section.
func (f *batch) settings(name string, p config.Provider) (service.Section, error) {
	client, err := f.client(name, p)
	if err != nil {
		return service.Section{}, err
	}
	s := service.Section{
		Name: name, Key: p.APIKey, ID: p.AppID, Secret: p.APISecret, BaseURL: p.BaseURL, Region: p.Region, Proxy: p.Proxy,
		Models: map[service.Role]string{service.LLM: p.Model, service.ASR: p.ASRModel, service.TTS: p.TTSModel, service.Embed: p.EmbedModel},
		Voices: p.Voice, Format: p.Format, Rate: p.SampleRate, Speed: p.Speed, Retries: p.Retries,
		Temperature: p.Temp, MaxTokens: p.MaxTokens, Vision: p.Vision, Extra: p.Extra, Headers: p.Headers,
		Timeouts: service.Timeouts{First: p.Timeout}, Log: f.log, Client: client, Careful: f.cfg.Typed(name),
	}
	k, _ := catalog.Find(f.kinds, p.Type)
	s.Settings = ownSettings(f.cfg, k, p)
	if p.EmbedModel == "" && (slices.Contains(k.Models[service.Embed], p.Model) || embeds(p.Model)) {
		s.Models[service.Embed] = p.Model
	}
	if k.LLM == nil || hasSection(f.cfg, name) && !chat(k, p.Model) {
		// A model that is set for a section is that of every role, unless a service thinks with it.
		s.Models[service.ASR], s.Models[service.TTS] = cmp.Or(p.ASRModel, p.Model), cmp.Or(p.TTSModel, p.Model)
		s.Models[service.Realtime], s.Models[service.Voiceprint] = p.Model, p.Model
	}
	return s, nil
}

// ownSettings returns the further settings of a section, with those that other keys give: the folder of models, and the
// utterances at the same time.
func ownSettings(cfg *config.Config, k service.Kind, p config.Provider) map[string]any {
	more := maps.Clone(p.Settings)
	if more == nil {
		more = map[string]any{}
	}
	takes := func(name string) bool {
		return more[name] == nil && slices.ContainsFunc(k.More, func(s service.Setting) bool { return s.Name == name })
	}
	if takes("folder") {
		more["folder"] = cfg.ModelsFolder()
	}
	if takes("decoders") && p.Decoders > 0 {
		more["decoders"] = p.Decoders
	}
	return more
}

// embeds judges by its name whether a model makes vectors.
func embeds(model string) bool {
	model = strings.ToLower(model)
	return slices.ContainsFunc([]string{"embed", "bge-", "e5-", "gte-", "minilm"}, func(part string) bool { return strings.Contains(model, part) })
}

// hasSection reports whether a name has a section of its own.
func hasSection(c *config.Config, name string) bool { _, ok := c.Providers[name]; return ok }

// chat reports whether a model is known as one that thinks.
func chat(k service.Kind, model string) bool {
	return slices.Contains(k.Models[service.LLM], model) && !slices.Contains(k.Models[service.ASR], model) && !slices.Contains(k.Models[service.TTS], model)
}

// warm lets the start load an engine that is here, or open a connection to a service.
func (f *batch) warm(k service.Kind, provider any) {
	w, ok := provider.(providers.Warmer)
	switch {
	case ok && k.Here != nil:
		f.start.load(w.Warm)
	case ok:
		f.start.dial(w.Warm)
	}
}

// describe names a service for people, without what may be secret in its address. An engine that is here names itself.
func describe(k service.Kind, s service.Section, r service.Role, provider any) string {
	if d, ok := provider.(interface{ Describe() string }); ok {
		return d.Describe()
	}
	model := s.Models[r]
	if known := k.Models[r]; model == "" && len(known) > 0 {
		model = known[0]
	}
	at := s.Address(k.Regions, k.Address)
	if k.At != nil {
		at = cmp.Or(k.At(s, r), at)
	}
	if u, err := url.Parse(at); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		at = u.String()
		if s.BaseURL == "" && r != service.LLM && u.Host != "" { // the path, and often the scheme, is another one for speech
			at = u.Host
		}
	}
	what := cmp.Or(model, k.Title)
	if at == "" {
		return what
	}
	return what + " at " + at
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
