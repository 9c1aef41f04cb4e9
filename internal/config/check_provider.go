package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/service"
)

// The roles of a chain member.
const (
	roleASR = "asr"
	roleLLM = "llm"
	roleTTS = "tts"
	roleVLM = "vision"

	roleRealtime = "realtime"
	roleEmbed    = "embed"

	roleVoiceprint = "voiceprint"
)

// types are the kinds of services and what each type of a section can do. They are made once for all checks of some
// settings: making the catalogue takes a fifth of a millisecond.
type types struct {
	kinds []service.Kind
	roles map[string][]string // by type
	named map[string][]string // by the names that need no section: every type is one
}

func knownTypes() types {
	t := types{
		kinds: catalog.Kinds(),
		roles: map[string][]string{"pocketsphinx": {roleASR}, "rules": {roleLLM}, "local": {roleTTS}},
	}
	for _, k := range t.kinds {
		var roles []string
		for _, r := range k.Roles() {
			roles = append(roles, string(r))
			if r == service.LLM {
				roles = append(roles, roleVLM)
			}
		}
		t.roles[k.Type] = roles
	}
	t.named = maps.Clone(t.roles)
	t.named["auto"] = []string{roleASR, roleLLM, roleTTS, roleRealtime, roleEmbed, roleVoiceprint}
	t.named[NoChain] = []string{roleRealtime, roleEmbed, roleVoiceprint}
	t.named["ollama"] = []string{roleLLM, roleVLM, roleEmbed}
	return t
}

// kind is the kind of a type; the zero kind of one that is unknown takes nothing.
func (t types) kind(name string) service.Kind {
	k, _ := catalog.Find(t.kinds, name)
	return k
}

func (ch checker) checkChains(c *Config) {
	ch.checkVariables()
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		ch.checkProvider(name, c.Providers[name])
	}
	ch.checkChain(c, c.ASR, roleASR, roleASR)
	ch.checkChain(c, c.LLM, roleLLM, roleLLM)
	ch.checkChain(c, c.TTS, roleTTS, roleTTS)
	ch.checkChain(c, c.Vision, roleVLM, roleVLM)
	ch.checkChain(c, c.Realtime, roleRealtime, roleRealtime)
	ch.checkChain(c, c.Embed, roleEmbed, roleEmbed)
	ch.checkChain(c, c.Speakers, roleVoiceprint, roleVoiceprint)
	for _, chain := range []struct {
		members []string
		name    string
	}{{c.ASR, "asr"}, {c.LLM, "llm"}, {c.TTS, "tts"}} {
		if len(chain.members) == 0 {
			ch.bad(key(chain.name), "config/chain-empty")
		}
	}
}

// checkChain checks the members of a chain that is set at a path.
func (ch checker) checkChain(c *Config, chain []string, role string, at ...string) {
	for i, name := range chain {
		roles, known := ch.types.named[name]
		if p, section := c.Providers[name]; section {
			roles, known = ch.types.roles[p.Type], true
			if roles == nil {
				continue // the section's own problem
			}
		}
		switch {
		case !known && (!ch.whole() || !ch.whole("providers")):
			// Its section may be what could not be read.
		case !known:
			near := prompts.Nearest(name, c.namesFor(ch.types, role))
			ch.bad(at, "config/no-provider", name, near)
		case !slices.Contains(roles, role):
			wrongRole(ch, c, name, role, roles, at)
		case name == NoChain && len(chain) > 1:
			ch.bad(at, "config/none-alone", NoChain)
		case slices.Contains(chain[:i], name):
			ch.bad(at, "config/member-twice", name)
		}
	}
}

// namesFor lists the names that a chain of that role may hold.
func (c *Config) namesFor(t types, role string) []string {
	var names []string
	for name, roles := range t.named {
		if _, section := c.Providers[name]; !section && slices.Contains(roles, role) {
			names = append(names, name)
		}
	}
	for name, p := range c.Providers {
		if slices.Contains(t.roles[p.Type], role) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkProvider checks a section: its type, then what all types have, then what its own
// type has.
func (ch checker) checkProvider(name string, p Provider) {
	at := func(key string) []string { return []string{"providers", name, key} }
	all := slices.Sorted(maps.Keys(ch.types.roles))
	switch name {
	case "auto":
		ch.bad(key("providers", name), "config/reserved-name")
	case NoChain:
		ch.bad(key("providers", name), "config/reserved-none", NoChain)
	}
	switch {
	case p.Type == "" && (!ch.whole("providers", name) || len(p.Settings) > 0):
		// The key may be misspelt.
	case p.Type == "":
		ch.bad(at("type"), "config/no-type", strings.Join(all, ", "))
	case ch.types.roles[p.Type] == nil:
		ch.bad(at("type"), "config/unknown-type", p.Type, nearestType(p.Type, all), strings.Join(all, ", "))
	}
	if p.Temp != nil {
		within(ch, *p.Temp, 0, 2, at("temperature")...)
	}
	within(ch, p.MaxTokens, 0, 1000000, at("max_tokens")...)
	if p.SampleRate != 0 {
		within(ch, p.SampleRate, 8000, 48000, at("sample_rate")...)
	}
	if p.Speed != 0 {
		within(ch, p.Speed, 0.25, 4, at("speed")...)
	}
	if p.Retries != nil {
		within(ch, *p.Retries, 0, 10, at("retries")...)
	}
	if p.Proxy != "" && p.Proxy != "none" {
		ch.address(p.Proxy, []string{"http", "https", "socks5", "socks5h"}, at("proxy")...)
	}
	within(ch, p.FirstToken, 0, time.Minute, at("first_token")...)
	within(ch, p.FirstSound, 0, time.Minute, at("first_sound")...)
	within(ch, p.Transcript, 0, time.Minute, at("transcript")...)
	within(ch, p.Timeout, 0, 10*time.Minute, at("timeout")...)
	within(ch, p.Decoders, 0, 64, at("decoders")...)
	sectionChecker{ch, name, p, ch.types.kind(p.Type)}.check()
}

// warn tells of what is probably wrong with the value at a path.
func (ch checker) warn(at []string, id string, args ...any) {
	place := ch.place(at...)
	if place != "" {
		place += ": "
	}
	w := Warning(place + keyName(at) + ": " + message.Both(id, args...))
	if !slices.Contains(ch.warnings, w) {
		ch.warnings = append(ch.warnings, w)
	}
}

// keysOf lists the keys of a section of a type.
func keysOf(k service.Kind) []string {
	names := childNames(reflect.TypeFor[Provider]())
	for _, s := range k.More {
		names = append(names, s.Name)
	}
	return names
}

// offersVoices reports whether "auto" stands for any voice: of a section, or of a service
// whose keys are in the environment.
func offersVoices(c *Config, t types, env map[string]string) bool {
	for _, k := range t.kinds {
		if k.TTS == nil {
			continue
		}
		for name, p := range c.Providers {
			if p.Type == k.Type && !c.Names(name) {
				return true
			}
		}
		if k.Here != nil && k.Here(service.Section{Settings: map[string]any{"folder": c.ModelsFolder()}}, service.TTS) {
			return true
		}
		missing := slices.ContainsFunc(k.Env, func(e service.Env) bool { return slices.Contains(k.Needs, e.Field) && env[e.Name] == "" })
		if len(k.Needs) > 0 && !missing {
			return true
		}
	}
	return false
}

// address reports what is no address of one of these schemes. It does not show a user or a
// password.
func (ch checker) address(value string, schemes []string, at ...string) {
	if at[len(at)-1] == "proxy" && slices.Contains([]string{"off", "no", "false", "direct", "None"}, value) {
		ch.bad(at, "config/base-url", value, strings.Join(schemes, "://, ")+"://", "none")
		return
	}
	scheme, rest, found := strings.Cut(value, "://")
	if !found || rest == "" || !slices.Contains(schemes, strings.ToLower(scheme)) {
		meant := nearestAddress(scheme, rest, schemes)
		if _, host, user := strings.Cut(value, "@"); user {
			value, meant = "…@"+host, schemes[0]+"://…@"+host
		}
		ch.bad(at, "config/base-url", value, strings.Join(schemes, "://, ")+"://", meant)
	}
}

// nearestAddress makes an address that begins as it should of one that does not: safe if that was.
func nearestAddress(scheme, rest string, schemes []string) string {
	scheme = strings.ToLower(strings.TrimSpace(scheme))
	if slices.Contains(schemes, scheme) {
		return scheme + "://" + rest
	}
	best := schemes[0]
	if scheme == "https" || scheme == "wss" {
		best = schemes[min(1, len(schemes)-1)]
	}
	if rest == "" { // it has no scheme at all
		rest = scheme
	}
	return best + "://" + strings.TrimLeft(rest, "/:")
}

// setting reports a value that a type's own setting cannot have.
func (ch checker) setting(value any, s service.Setting, at ...string) {
	kinds := map[service.Type]string{service.Text: "config/a-text", service.Flag: "config/a-switch", service.Number: "config/a-number", service.List: "config/a-list"}
	fits := false
	switch v := value.(type) {
	case string:
		fits = s.Type == service.Text
		if fits && len(s.Values) > 0 && !slices.Contains(s.Values, v) {
			ch.bad(at, "config/none-of", v, strings.Join(s.Values, ", "))
		}
	case bool:
		fits = s.Type == service.Flag
	case int, int64, float64:
		fits = s.Type == service.Number
	case []any:
		fits = s.Type == service.List
	}
	if !fits {
		ch.wrongType(ch.place(at...), at, kinds[s.Type], kindOf(value))
	}
}

// kindOf returns the id of the name of a value's kind.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "config/a-text"
	case bool:
		return "config/is-switch"
	case int, int64, float64:
		return "config/a-number"
	case []any:
		return "config/is-list"
	}
	return "config/a-section"
}
