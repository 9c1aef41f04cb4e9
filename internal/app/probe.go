package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
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
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
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
	names := map[service.Role][]string{service.ASR: s.cfg.ASR, service.LLM: s.cfg.LLM, service.TTS: s.cfg.TTS, service.Vision: s.cfg.Vision, service.Realtime: s.cfg.Realtime}[r]
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
	case "ollama", "rules":
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
func (s *Services) Free(name string) bool { return isFree(s.cfg, s.f.kinds, name) }

// StatesPath is where a running server tells its owner how its services are.
const StatesPath = "/api/services"

// States is the answer to GET /api/services.
type States struct {
	Chains []ChainState `json:"chains"`
}

// ChainState is a chain, with its members in the order in which they are asked.
type ChainState struct {
	Role    service.Role  `json:"role"`
	Agents  []string      `json:"agents,omitempty"` // that have it for themselves; none: it is that of all
	Members []MemberState `json:"members"`
}

// MemberState is a member of a chain in a running server. It holds no key, and no address but its host and path.
type MemberState struct {
	Name      string          `json:"name"`
	About     string          `json:"about,omitempty"`
	Condition chain.Condition `json:"condition"` // "left_out": it could not be made
	Failures  int             `json:"failures,omitempty"`
	Rest      int64           `json:"rest_ms,omitempty"`  // until it is tried again
	First     float64         `json:"first_ms,omitempty"` // of its last result
	Given     time.Time       `json:"given,omitzero"`
	Fault     string          `json:"fault,omitempty"` // of its last failure, in both languages, or why it is left out
	Failed    time.Time       `json:"failed,omitzero"`

	why  error // of Fault; nil: there is none
	free bool  // it has no keys
}

// LeftOut is the condition of a member that could not be made.
const LeftOut chain.Condition = "left_out"

// stater is a chain that knows how its members are.
type stater interface{ States() []chain.State }

// condition serves how the services of a server are.
type condition struct {
	cfg  *config.Config
	cast *cast
	crew *crew
	left map[string]error // of the report of the start
}

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

// chains lists the chains of all, then those of agents; one that several agents have stands once.
func (a condition) chains() States {
	kinds, all := catalog.Kinds(), States{}
	seen := map[stater]int{}
	add := func(role service.Role, agent string, provider any) {
		s, ok := provider.(stater)
		if i, again := seen[s]; ok && again {
			if of := &all.Chains[i]; agent != "" && len(of.Agents) > 0 {
				of.Agents = append(of.Agents, agent)
			}
			return
		}
		c := ChainState{Role: role, Members: []MemberState{}}
		if agent != "" {
			c.Agents = []string{agent}
		}
		if ok {
			seen[s] = len(all.Chains)
			for _, m := range s.States() {
				c.Members = append(c.Members, memberState(m, isFree(a.cfg, kinds, m.Name)))
			}
		}
		if agent == "" {
			c.Members = append(c.Members, a.leftOut(role)...)
		}
		if agent == "" || ok {
			all.Chains = append(all.Chains, c)
		}
	}
	each := func(agent string, e agentEngines) {
		add(service.ASR, agent, e.asr)
		add(service.LLM, agent, e.llm)
		add(service.TTS, agent, e.tts)
		add(service.Vision, agent, e.vision)
		add(service.Realtime, agent, e.duplex)
	}
	each("", a.cast.main)
	players := a.cast.now.Load()
	for _, name := range a.crew.Names() {
		p := players.byName[name]
		each(name, agentEngines{asr: p.ASR, llm: p.LLM, tts: p.TTS, vision: p.vision, duplex: p.Realtime})
	}
	return all
}

// isFree reports whether the service of a name is used without a key.
func isFree(cfg *config.Config, kinds []service.Kind, name string) bool {
	kind, key := name, false
	if p, ok := cfg.Providers[name]; ok {
		kind, key = p.Type, p.APIKey != ""
	}
	k, known := catalog.Find(kinds, kind)
	return known && k.Free && !key
}

// memberState makes a member of the answer.
func memberState(m chain.State, free bool) MemberState {
	s := MemberState{
		Name: m.Name, About: m.About, Condition: m.Condition, Failures: m.Failures, Rest: m.Rest.Milliseconds(),
		First: float64(m.First.Microseconds()) / 1000, Given: m.Given, Failed: m.Failed,
		why: m.Fault, free: free,
	}
	switch {
	case errors.Is(m.Fault, chain.ErrLate):
		s.Fault = message.Both("services/overtaken")
	case m.Fault != nil:
		s.Fault = Why(m.Fault, free)
	}
	return s
}

// leftOut lists what could not be made for a role when the server started.
func (a condition) leftOut(role service.Role) (all []MemberState) {
	as := map[service.Role]string{service.ASR: "ASR ", service.LLM: "LLM ", service.TTS: "TTS ", service.Vision: "VLM ", service.Realtime: "S2S "}[role]
	for key, why := range a.left {
		if name, ok := strings.CutPrefix(key, as); ok {
			all = append(all, MemberState{Name: name, Condition: LeftOut, Fault: readable(why), why: why})
		}
	}
	slices.SortFunc(all, func(a, b MemberState) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Why says in both languages what is wrong with a service that has failed, and then what the service said. free says that
// it has no keys that could be wrong.
func Why(err error, free bool) string {
	cause := transport.CauseOf(err, free)
	if cause == "" {
		return said(err)
	}
	words := said(err)
	if cause == transport.CauseLanguage { // the words begin with the same
		words = strings.TrimPrefix(strings.TrimPrefix(words, providers.ErrLanguage.Error()), ": ")
	}
	return strings.TrimSuffix(message.Both(string(cause))+": "+words, ": ")
}

// said returns a provider's words for its failure, without its name.
func said(err error) string {
	if failed, ok := err.(*providers.Error); ok { //nolint:errorlint // one that is wrapped says more
		return transport.Plain(failed.Err)
	}
	return transport.Plain(err)
}

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
