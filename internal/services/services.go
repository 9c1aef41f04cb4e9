// Package services is what people do with the services of a server: it lists the chains with their members, tries a
// service before it is set, with what was typed, and makes changes of the settings of what people type.
package services

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/settings"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
	"xiaozhi/store"
)

// Settings are those in force, and the way to change them; [settings.Settings] is one.
type Settings interface {
	Current() *config.Config
	Revision() int
	Plan(ctx context.Context, by account.Person, base int, edits []settings.Edit) (*settings.Plan, error)
	Apply(ctx context.Context, by account.Person, planID string) (settings.Revision, error)
	Undo(ctx context.Context, by account.Person, n int) (settings.Revision, error)
}

// Vault tells of secrets that are sealed; [sealed.Vault] is one.
type Vault interface {
	List(ctx context.Context) ([]store.Secret, error)
}

// Options configure [Services].
type Options struct {
	Settings Settings
	States   func() engines.States // of the chains in force
	// Unseal puts the sealed secrets of settings into their places.
	Unseal func(ctx context.Context, cfg *config.Config) error
	Vault  Vault                // nil: it is not told who has typed a secret
	Voice  func() providers.TTS // that of all, which speaks to a recogniser without a voice of its own; nil: none
	Ears   func() providers.ASR // that of all, which hears a voice; nil: none
	// Spans hands over those of the last turns that are kept, the newest first; nil: none are.
	Spans func(ctx context.Context, turns int, each func(doc string)) error
	// Audit keeps what people have tried; nil: nothing does.
	Audit func(ctx context.Context, by account.Person, act, object string, outcome error)
	Limit time.Duration // of what a service may take in a test; 0: 10 s
	Log   *slog.Logger
}

// Services lists, tries and sets the services of a server. Its methods may be called at the same time.
type Services struct {
	o     Options
	clips *clips
	held  *held
	tests trying
	usage usages
}

// New returns them.
func New(o Options) *Services {
	o.Limit = cmp.Or(o.Limit, testTime)
	return &Services{o: o, clips: newClips(), held: &held{}}
}

// Revision is that of the settings in force.
func (s *Services) Revision() int { return s.o.Settings.Revision() }

// Roles are those of chains, in the order in which a turn needs them.
func Roles() []service.Role {
	return []service.Role{service.ASR, service.LLM, service.TTS, service.Realtime, service.Vision, service.Embed}
}

// Condition says how a member of a chain does.
type Condition string

// The conditions.
const (
	Ready   Condition = "ready"
	Resting Condition = "resting"  // left out after failures, for a while
	Trying  Condition = "trying"   // the next request tries it
	LeftOut Condition = "left_out" // it could not be made
)

// Member is a service in a chain.
type Member struct {
	Name      string
	Type      string // of its kind
	Title     string // of its kind
	About     string // what it is, with model and address
	Condition Condition
	Failures  int           // in a row
	Rest      time.Duration // until it is tried again
	First     time.Duration // of its last result
	Given     time.Time     // when that was
	Fault     *Fault        // its last failure, or why it is left out; nil: none
	Failed    time.Time     // when that was
	Auto      bool          // it is there because its key, or it, was found
}

// Chain lists the members for a role in the order in which they are asked.
type Chain struct {
	Role    service.Role
	Agents  []string // that have it for themselves; none: it is that of all
	Members []Member
	Auto    bool     // what is found joins by itself
	Set     bool     // people have set it in the console
	Pinned  string   // where it is set so that the console cannot change it
	More    []string // services that could join, by name
}

// names are those of the members, in order.
func (c Chain) names() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Name)
	}
	return all
}

// chainOf returns the chain of the settings for a role.
func chainOf(c *config.Config, r service.Role) []string {
	return map[service.Role][]string{service.ASR: c.ASR, service.LLM: c.LLM, service.TTS: c.TTS, service.Vision: c.Vision, service.Realtime: c.Realtime, service.Embed: c.Embed}[r]
}

// Chains lists the chains of all, then those of agents.
func (s *Services) Chains() (all []Chain) {
	cfg := s.o.Settings.Current()
	states := s.o.States().Chains
	for _, role := range Roles() {
		c := Chain{Role: role, Pinned: cfg.PinnedAt([]string{string(role)}).Place, Set: cfg.OriginOf([]string{string(role)}).Layer == config.LayerConsole}
		i := slices.IndexFunc(states, func(o engines.ChainState) bool { return o.Role == role && len(o.Agents) == 0 })
		if i >= 0 {
			c.Members, c.Auto = ordered(cfg, states[i].Members, chainOf(cfg, role))
		}
		c.More = s.others(cfg, c)
		all = append(all, c)
	}
	for _, o := range states {
		if len(o.Agents) == 0 {
			continue
		}
		c := Chain{Role: o.Role, Agents: o.Agents}
		for _, m := range o.Members {
			c.Members = append(c.Members, member(cfg, m))
		}
		all = append(all, c)
	}
	return all
}

// ordered puts the members of a chain into the order of its names; what stands for "auto" is in its place.
func ordered(cfg *config.Config, states []engines.MemberState, names []string) (all []Member, auto bool) {
	rest := slices.Clone(states)
	take := func(name string) {
		if i := slices.IndexFunc(rest, func(m engines.MemberState) bool { return m.Name == name }); i >= 0 {
			all = append(all, member(cfg, rest[i]))
			rest = slices.Delete(rest, i, i+1)
		}
	}
	for _, name := range names {
		if name != "auto" {
			take(name)
			continue
		}
		auto = true
		for _, m := range slices.Clone(rest) {
			if !slices.Contains(names, m.Name) {
				take(m.Name)
				all[len(all)-1].Auto = true
			}
		}
	}
	for _, m := range rest {
		all = append(all, member(cfg, m))
	}
	return all, auto
}

// others lists the services that could join a chain: sections that no kind keeps from it, and what needs no section.
func (s *Services) others(cfg *config.Config, c Chain) (all []string) {
	inside := c.names()
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		if k, ok := KindOf(cfg.Providers[name].Type); ok && k.Can(c.Role) && !slices.Contains(inside, name) {
			all = append(all, name)
		}
	}
	for _, k := range builtIn() {
		if _, section := cfg.Providers[k.Type]; k.Can(c.Role) && c.Role != service.Vision && !section && !slices.Contains(inside, k.Type) {
			all = append(all, k.Type)
		}
	}
	return all
}

// typeOf is the type of a section, or a name that needs none.
func typeOf(cfg *config.Config, name string) string {
	if p, section := cfg.Providers[name]; section {
		return p.Type
	}
	return name
}

func member(cfg *config.Config, s engines.MemberState) Member {
	k, _ := KindOf(typeOf(cfg, s.Name))
	m := Member{
		Name: s.Name, Type: k.Type, Title: k.Title, About: s.About, Condition: Ready, Failures: s.Failures, Rest: time.Duration(s.Rest) * time.Millisecond,
		First: time.Duration(s.First * float64(time.Millisecond)), Given: s.Given, Failed: s.Failed,
	}
	switch s.Condition {
	case chain.Open:
		m.Condition = Resting
	case chain.HalfOpen:
		m.Condition = Trying
	case engines.LeftOut:
		m.Condition = LeftOut
	}
	if s.Cause != nil {
		m.Fault = faultOf(s.Cause, s.Free)
	}
	return m
}

// Section is a service that has settings of its own.
type Section struct {
	Name, Title string
	Type        string
	Does        []service.Role
	Used        []service.Role // chains of all that it is in
	Place       string         // where it stands, if that is a file; "": people have set it
}

// Sections lists the services that have settings of their own, by name.
func (s *Services) Sections() (all []Section) {
	cfg, chains := s.o.Settings.Current(), s.Chains()
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		p := cfg.Providers[name]
		k, _ := KindOf(p.Type)
		one := Section{Name: name, Title: k.Title, Type: p.Type, Does: k.Does}
		if inFile(cfg, name) {
			one.Place = p.Place
		}
		for _, c := range chains {
			if len(c.Agents) == 0 && slices.Contains(c.names(), name) {
				one.Used = append(one.Used, c.Role)
			}
		}
		all = append(all, one)
	}
	return all
}

// inFile reports whether anything of a section stands elsewhere than in the console, so that it cannot be removed there.
func inFile(cfg *config.Config, name string) bool {
	for _, v := range cfg.Values() {
		if len(v.Path) > 2 && v.Path[0] == "providers" && v.Path[1] == name && v.Set && v.Origin.Layer != config.LayerConsole {
			return true
		}
	}
	return false
}
