package config

import (
	"maps"
	"slices"
	"strings"

	"xiaozhi/prompts"
	"xiaozhi/providers/service"
)

// NoChain is the only name of a chain that has no members.
const NoChain = "none"

// IsNone reports whether a chain is one of no members.
func IsNone(chain []string) bool { return slices.Equal(chain, []string{NoChain}) }

// TakesRealtime reports whether a chain takes every service that hears and speaks by itself.
func (c *Config) TakesRealtime() bool {
	for _, a := range c.Agents {
		if slices.Contains(a.Realtime, "auto") {
			return true
		}
	}
	return slices.Contains(c.Realtime, "auto")
}

// wrongRole reports a member that cannot do a role, and the types that can do it with the same key.
func wrongRole(ch checker, c *Config, name, role string, roles, at []string) {
	kind := name
	if p, section := c.Providers[name]; section {
		kind = p.Type
	}
	if kin := ch.types.kin(kind, role); len(kin) > 0 {
		ch.bad(at, "config/wrong-role-kin", name, role, strings.Join(roles, ", "), strings.Join(kin, ", "))
		return
	}
	ch.bad(at, "config/wrong-role", name, role, strings.Join(roles, ", "))
}

// kin lists the types that can do a role and are paid for with the key of another type.
func (t types) kin(name, role string) (all []string) {
	env := t.kind(name).Env
	for _, k := range t.kinds {
		same := slices.ContainsFunc(k.Env, func(e service.Env) bool { return e.Field == service.Key && slices.Contains(env, e) })
		if same && slices.Contains(t.roles[k.Type], role) {
			all = append(all, k.Type)
		}
	}
	return all
}

// realtimeVoices returns the voices that are known of the members of a chain that hear and speak by themselves, by their
// types. chain is an agent's own; empty: that of all counts.
func (t types) realtimeVoices(c *Config, chain []string) map[string][]string {
	if len(chain) == 0 {
		chain = c.Realtime
	}
	voices := map[string][]string{}
	for _, name := range chain {
		kind := name
		if p, section := c.Providers[name]; section {
			kind = p.Type
		}
		k := t.kind(kind)
		if k.Realtime == nil {
			continue
		}
		for _, v := range k.Voices {
			voices[kind] = append(voices[kind], v.Name)
		}
	}
	return voices
}

// spoken reports whether a member that hears and speaks by itself is known to have a voice.
func (t types) spoken(c *Config, voice string, chain []string) bool {
	for _, names := range t.realtimeVoices(c, chain) {
		if slices.Contains(names, voice) {
			return true
		}
	}
	return false
}

// checkVoiceThere warns of a voice of an agent or a device that a member which hears and speaks by itself is not known to
// have: it speaks with that of its section then. chain is the agent's own; empty: that of all counts.
func checkVoiceThere(ch checker, c *Config, voice string, chain []string, at ...string) {
	if voice == "" {
		return
	}
	known := ch.types.realtimeVoices(c, chain)
	for _, kind := range slices.Sorted(maps.Keys(known)) {
		if names := known[kind]; !slices.Contains(names, voice) {
			ch.warn(at, "config/voice-not-there", kind, voice, prompts.Nearest(voice, names))
		}
	}
}
