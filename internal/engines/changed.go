package engines

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"xiaozhi/internal/config"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// Role is a service in one of its roles.
type Role struct {
	Name string
	Role service.Role
}

// Changed lists the services that settings use in another way than others do: what was put into a chain, and what has other
// settings, in each of its roles, if no chain names it in all that it can do. Prices are nothing that changes a service.
func Changed(before, cfg *config.Config) (all []Role) {
	s := OpenServices(cfg, nil)
	defer s.Close()
	other := func(name string) bool {
		was, is := before.Providers[name], cfg.Providers[name]
		for _, p := range []*config.Provider{&was, &is} {
			p.Place, p.Price = "", config.Price{}
		}
		return !reflect.DeepEqual(was, is)
	}
	add := func(name string, r service.Role) {
		if one := (Role{name, r}); !s.IsRules(name) && !slices.Contains(all, one) && slices.Contains(s.Roles(name), one.made()) {
			all = append(all, one)
		}
	}
	chains := func(old, now map[string][]string) {
		for role, names := range now {
			for _, name := range names {
				if name != "auto" && (other(name) || !slices.Contains(old[role], name)) {
					add(name, roles()[role])
				}
			}
		}
	}
	chains(chainsOfAll(before), chainsOfAll(cfg))
	for name, p := range cfg.Agents {
		chains(chainsOf(before.Agents[name]), chainsOf(p))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Providers)) {
		if other(name) && !slices.ContainsFunc(all, func(r Role) bool { return r.Name == name }) {
			for _, r := range s.Roles(name) {
				add(name, r)
			}
		}
	}
	order := []service.Role{service.ASR, service.LLM, service.TTS, service.Vision, service.Realtime, service.Embed, service.Voiceprint}
	slices.SortFunc(all, func(a, b Role) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Role), slices.Index(order, b.Role)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// made is the role for which a service is made: pictures are looked at by models.
func (r Role) made() service.Role {
	if r.Role == service.Vision {
		return service.LLM
	}
	return r.Role
}

// roles are the roles of chains, as the report calls them.
func roles() map[string]service.Role {
	return map[string]service.Role{
		"ASR": service.ASR, "LLM": service.LLM, "TTS": service.TTS, "VLM": service.Vision, "S2S": service.Realtime,
		"VEC": service.Embed, "VPR": service.Voiceprint,
	}
}

// Has returns a service as the set has it in a role, to be tried; false: no chain has it.
func (e *Set) Has(r Role) (t Tried, ok bool) {
	for as, role := range roles() {
		if m := e.held.held[as+" "+r.Name]; role == r.Role && m != nil {
			t.Name, t.What, t.Err = r.Name, m.about, m.err
			t.ASR, _ = m.what.(providers.ASR)
			t.LLM, _ = m.what.(providers.LLM)
			t.TTS, _ = m.what.(providers.TTS)
			t.Duplex, _ = m.what.(providers.Duplex)
			t.Embed, _ = m.what.(providers.Embedder)
			t.Voiceprint, _ = m.what.(providers.Voiceprint)
			return t, true
		}
	}
	return t, false
}
