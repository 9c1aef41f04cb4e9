package engines

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/service"
)

// Services are the services and engines of the settings, for a command that lists or tries
// them. They are for one goroutine.
type Services struct {
	f   *batch
	cfg *config.Config
}

// OpenServices makes none yet. Close must be called at the end. unseal opens the secrets that the
// settings keep sealed; it may be nil where there are none.
func OpenServices(cfg *config.Config, log *slog.Logger) *Services {
	return &Services{New(log).batch(cfg, NewReport(slog.New(slog.DiscardHandler))), cfg}
}

// Close frees what was made.
func (s *Services) Close() { s.f.Close() }

// Member is a member of a chain, and what it is or why it cannot be used.
type Member struct {
	Name string
	What string
	Err  error
}

// Chain lists the members of a chain by its role, in order.
func (s *Services) Chain(ctx context.Context, r service.Role) (all []Member) {
	names := map[service.Role][]string{
		service.ASR: s.cfg.ASR, service.LLM: s.cfg.LLM, service.TTS: s.cfg.TTS, service.Vision: s.cfg.Vision, service.Realtime: s.cfg.Realtime,
		service.Embed: s.cfg.Embed, service.Voiceprint: speakersOf(s.cfg),
	}[r]
	role := r
	if r == service.Vision {
		role = service.LLM
	}
	for _, name := range s.f.expand(names, role) {
		m := Member{Name: name}
		one := s.Try(ctx, name, role)
		m.What, m.Err = one.What, one.Err
		if name != "ollama" || m.Err == nil || slices.Contains(names, name) {
			all = append(all, m)
		}
	}
	return all
}

// Tried is a service made for one role; only that of the role is set.
type Tried struct {
	Member

	ASR providers.ASR
	LLM providers.LLM
	TTS providers.TTS

	Duplex providers.Duplex
	Embed  providers.Embedder

	Voiceprint providers.Voiceprint
}

// Try makes a service for a role.
func (s *Services) Try(ctx context.Context, name string, r service.Role) (t Tried) {
	t.Name = name
	p, err := s.f.section(ctx, name)
	if err != nil {
		t.Err = err
		return t
	}
	switch r {
	case service.ASR:
		if p.Type == "pocketsphinx" {
			t.What = message.Both("app/pocketsphinx")
			t.ASR, t.Err = pocketsphinx.New(pocketsphinx.Options{Name: name, Decoders: p.Decoders, Log: s.f.log})
			return t
		}
		t.ASR, t.What, t.Err = ofKind(s.f, r, name, p, func(k service.Kind) func(service.Section) (providers.ASR, error) { return k.ASR })
	case service.TTS:
		if p.Type == "local" {
			t.TTS, t.What, t.Err = s.f.voice(ctx, name, p)
			return t
		}
		t.TTS, t.What, t.Err = ofKind(s.f, r, name, p, func(k service.Kind) func(service.Section) (providers.TTS, error) { return k.TTS })
	case service.Realtime:
		t.Duplex, t.What, t.Err = s.f.duplex(ctx, name, p)
	case service.Embed:
		t.Embed, t.What, t.Err = ofKind(s.f, r, name, p, embedderOf)
	case service.Voiceprint:
		t.Voiceprint, t.What, t.Err = s.f.voiceprint(ctx, name, p)
	default:
		if p.Type == "rules" {
			t.What = message.Both("app/rules")
			texts, err := prompts.Load("")
			if err != nil {
				t.Err = err
				return t
			}
			t.LLM = rules.New(rules.Options{Prompts: texts.Phrase, Name: s.cfg.Agent.Name, Zone: s.cfg.Server.Zone(), ModelConfigured: true})
			return t
		}
		t.LLM, t.What, t.Err = ofKind(s.f, service.LLM, name, p, func(k service.Kind) func(service.Section) (providers.LLM, error) { return k.LLM })
	}
	return t
}

// Roles lists what a name can do.
func (s *Services) Roles(name string) []service.Role {
	switch kind := s.f.typeOf(name); kind {
	case "pocketsphinx":
		return []service.Role{service.ASR}
	case "local":
		return []service.Role{service.TTS}
	case "rules":
		return []service.Role{service.LLM}
	default:
		k, _ := catalog.Find(s.f.kinds, kind) // one that is unknown can do nothing
		return k.Roles()
	}
}

// Voices lists the voices of a name: those that its service tells, else those that are known here. asked says which.
func (s *Services) Voices(ctx context.Context, name string) (all []service.Voice, asked bool, err error) {
	k, _ := catalog.Find(s.f.kinds, s.f.typeOf(name))
	if k.ListVoices == nil { // no key is needed for what is known here
		return k.Voices, false, nil
	}
	p, err := s.f.section(ctx, name)
	if err != nil {
		return nil, true, err
	}
	section, err := s.f.settings(name, p)
	if err != nil {
		return nil, true, err
	}
	all, err = k.ListVoices(ctx, section)
	return all, true, err
}

// Price returns what the owner has set as the price of a service.
func (s *Services) Price(name string) config.Price { return s.cfg.Providers[name].Price }

// Free reports whether the service of a name has no keys.
func (s *Services) Free(name string) bool { return IsFree(s.cfg, s.f.kinds, name) }

// Language returns the language in which a service is tried: Chinese, or English if it speaks no Chinese.
func (s *Services) Language(name string) string {
	kind := s.f.typeOf(name)
	k, _ := catalog.Find(s.f.kinds, kind)
	unknown := func(v service.Voice) bool { return len(v.Language) == 0 }
	if kind == "pocketsphinx" || len(k.Voices) > 0 && !slices.ContainsFunc(k.Voices, unknown) && service.Speaking(k.Voices, "zh") == "" {
		return "en"
	}
	return "zh"
}

// Meant returns the name of a section or a type that was probably meant, if it is only a slip away.
func (s *Services) Meant(name string) (meant string, slip bool) {
	all := []string{"pocketsphinx", "rules", "local"}
	for _, k := range s.f.kinds {
		all = append(all, k.Type)
	}
	return prompts.Misspelt(name, append(all, slices.Collect(maps.Keys(s.cfg.Providers))...))
}

// IsRules reports whether a name stands for the commands that need no model.
func (s *Services) IsRules(name string) bool { return s.f.isRules(name) }
