package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"xiaozhi/prompts"
)

// The roles of a chain member.
const (
	roleASR = "asr"
	roleLLM = "llm"
	roleTTS = "tts"
	roleVLM = "vision"
)

// typeRoles says what the types of providers can do.
func typeRoles() map[string][]string {
	return map[string][]string{
		"openai":       {roleASR, roleLLM, roleTTS, roleVLM},
		"pocketsphinx": {roleASR},
		"rules":        {roleLLM},
		"local":        {roleTTS},
	}
}

// builtinRoles says what the names that need no section can do.
func builtinRoles() map[string][]string {
	return map[string][]string{
		"auto":         {roleLLM},
		"rules":        {roleLLM},
		"local":        {roleTTS},
		"pocketsphinx": {roleASR},
		"openai":       {roleASR, roleLLM, roleTTS, roleVLM},
		"deepseek":     {roleLLM, roleVLM},
		"dashscope":    {roleLLM, roleVLM},
		"ollama":       {roleLLM, roleVLM},
	}
}

// checkChains holds chains and sections to what can be built from them.
func (ch checker) checkChains(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		ch.checkProvider(name, c.Providers[name])
	}
	ch.checkChain(c, c.ASR, roleASR)
	ch.checkChain(c, c.LLM, roleLLM)
	ch.checkChain(c, c.TTS, roleTTS)
	ch.checkChain(c, c.Vision, roleVLM)
	for _, chain := range []struct {
		members []string
		name    string
	}{{c.ASR, "asr"}, {c.LLM, "llm"}, {c.TTS, "tts"}} {
		if len(chain.members) == 0 {
			ch.bad(key(chain.name), "config/chain-empty")
		}
	}
}

func (ch checker) checkChain(c *Config, chain []string, role string) {
	for i, name := range chain {
		roles, known := builtinRoles()[name]
		if p, section := c.Providers[name]; section {
			roles, known = typeRoles()[p.Type], true
			if roles == nil {
				continue // the section's own problem
			}
		}
		switch {
		case !known && (!ch.whole() || !ch.whole("providers")):
			// Its section may be what could not be read.
		case !known:
			near := prompts.Nearest(name, c.namesFor(role))
			ch.bad(key(role), "config/no-provider", name, near)
		case !slices.Contains(roles, role):
			ch.bad(key(role), "config/wrong-role", name, role, strings.Join(roles, ", "))
		case slices.Contains(chain[:i], name):
			ch.bad(key(role), "config/member-twice", name)
		}
	}
}

// namesFor lists the names that a chain of that role may hold.
func (c *Config) namesFor(role string) []string {
	var names []string
	for name, roles := range builtinRoles() {
		if _, section := c.Providers[name]; !section && slices.Contains(roles, role) {
			names = append(names, name)
		}
	}
	for name, p := range c.Providers {
		if slices.Contains(typeRoles()[p.Type], role) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (ch checker) checkProvider(name string, p Provider) {
	at := func(key string) []string { return []string{"providers", name, key} }
	types := slices.Sorted(maps.Keys(typeRoles()))
	if name == "auto" {
		ch.bad(key("providers", name), "config/reserved-name")
	}
	switch {
	case p.Type == "" && !ch.whole("providers", name):
		// The key may be misspelt.
	case p.Type == "":
		ch.bad(at("type"), "config/no-type", strings.Join(types, ", "))
	case typeRoles()[p.Type] == nil:
		ch.bad(at("type"), "config/unknown-type", p.Type, prompts.Nearest(p.Type, types), strings.Join(types, ", "))
	}
	if p.BaseURL != "" && !strings.HasPrefix(p.BaseURL, "http://") && !strings.HasPrefix(p.BaseURL, "https://") {
		ch.bad(at("base_url"), "config/base-url", p.BaseURL)
	}
	if p.Temp != nil {
		within(ch, *p.Temp, 0, 2, at("temperature")...)
	}
	within(ch, p.MaxTokens, 0, 1000000, at("max_tokens")...)
	if p.Format != "" {
		ch.oneOf(p.Format, []string{"pcm", "wav", "mp3", "opus"}, at("format")...)
	}
	if p.SampleRate != 0 {
		within(ch, p.SampleRate, 8000, 48000, at("sample_rate")...)
	}
	within(ch, p.FirstToken, 0, time.Minute, at("first_token")...)
	within(ch, p.FirstSound, 0, time.Minute, at("first_sound")...)
	within(ch, p.Transcript, 0, time.Minute, at("transcript")...)
	within(ch, p.Timeout, 0, 10*time.Minute, at("timeout")...)
	within(ch, p.Decoders, 0, 64, at("decoders")...)
}
