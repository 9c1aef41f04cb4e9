package app

import (
	"context"
	"log/slog"
	"slices"

	"xiaozhi/internal/config"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/local"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/service"
)

// Services are the services and engines of the settings, for a command that lists or tries
// them. They are for one goroutine.
type Services struct {
	f   *resolver
	cfg *config.Config
}

// OpenServices makes none yet. Close must be called at the end. unseal opens the secrets that the
// settings keep sealed; it may be nil where there are none.
func OpenServices(cfg *config.Config, log *slog.Logger) *Services {
	found := &report{log: slog.New(slog.DiscardHandler)}
	return &Services{newResolver(cfg, found, &lifecycle{log: log}, log), cfg}
}

// Close frees what was made.
func (s *Services) Close() { s.f.end() }

// Member is a member of a chain, and what it is or why it cannot be used.
type Member struct {
	Name string
	What string
	Err  error
}

// Chain lists the members of a chain by its role, in order.
func (s *Services) Chain(ctx context.Context, r service.Role) (all []Member) {
	names := map[service.Role][]string{service.ASR: s.cfg.ASR, service.LLM: s.cfg.LLM, service.TTS: s.cfg.TTS, service.Vision: s.cfg.Vision}[r]
	role := r
	if r == service.Vision {
		role = service.LLM
	}
	for _, name := range s.f.expand(names, role) {
		m := Member{Name: name}
		if s.f.isRules(name) {
			all = append(all, m)
			continue
		}
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
			t.ASR, t.Err = pocketsphinx.New(pocketsphinx.Options{Name: name, Decoders: p.Decoders, Log: s.f.log})
			return t
		}
		t.ASR, t.What, t.Err = ofKind(s.f, r, name, p, func(k service.Kind) func(service.Section) (providers.ASR, error) { return k.ASR })
	case service.TTS:
		if p.Type == "local" {
			t.TTS, t.Err = local.New(ctx, local.Options{Name: name, EnglishVoice: p.Voice.For("en"), Log: s.f.log})
			return t
		}
		t.TTS, t.What, t.Err = ofKind(s.f, r, name, p, func(k service.Kind) func(service.Section) (providers.TTS, error) { return k.TTS })
	default:
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
	case "ollama":
		return []service.Role{service.LLM}
	default:
		k, _ := catalog.Find(s.f.kinds, kind) // one that is unknown can do nothing
		return slices.DeleteFunc(k.Roles(), func(r service.Role) bool { return r == service.Realtime })
	}
}

// Voices lists the voices of a name: those that its service tells, else those that are known.
func (s *Services) Voices(ctx context.Context, name string) ([]service.Voice, error) {
	p, err := s.f.section(ctx, name)
	if err != nil {
		return nil, err
	}
	k, _ := catalog.Find(s.f.kinds, p.Type)
	if k.ListVoices == nil {
		return k.Voices, nil
	}
	section, err := s.f.settings(name, p)
	if err != nil {
		return nil, err
	}
	return k.ListVoices(ctx, section)
}

// Price returns what the owner has set as the price of a service.
func (s *Services) Price(name string) config.Price { return s.cfg.Providers[name].Price }
