package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"xiaozhi/prompts"
)

// Persona configures an agent: whom a device talks to. What is not set is that of the
// device, of the section agent and of the chains of all.
type Persona struct {
	Prompt    string      `koanf:"prompt"`   // name of a prompt; "": the one that is called like the agent, or that of all
	Language  string      `koanf:"language"` // zh, en or ""
	Voice     string      `koanf:"voice"`
	ASR       []string    `koanf:"asr"` // chains; empty: those of all
	LLM       []string    `koanf:"llm"`
	TTS       []string    `koanf:"tts"`
	Vision    []string    `koanf:"vision"`
	Tools     DeviceTools `koanf:"tools"`
	Memory    string      `koanf:"memory"`     // keep, forget or "": keep
	WakeWords []string    `koanf:"wake_words"` // empty: those of all
	ExitWords []string    `koanf:"exit_words"` // empty: those of all
}

// Forget is the value of [Persona].Memory by which nothing outlasts a conversation.
const Forget = "forget"

// Original is the name by which a device's own agent is called back: no other has it.
const Original = "original"

// AgentNames lists the agents there are, sorted: those of the settings, and each prompt.
func (c *Config) AgentNames(prompts []string) []string {
	names := append(slices.Collect(maps.Keys(c.Agents)), prompts...)
	slices.Sort(names)
	return slices.Compact(names)
}

// promptNames lists the prompts of the program and of the data folder. nil: they cannot
// be read, which is told where they are used.
func promptNames(data string) []string {
	folder := ""
	if data != "" {
		folder = filepath.Join(data, "prompts")
	}
	set, err := prompts.Load(folder)
	if err != nil {
		return nil
	}
	return set.Names()
}

func (ch checker) checkAgents(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		p, at := c.Agents[name], func(names ...string) []string { return append([]string{"agents", name}, names...) }
		if name == Original || strings.TrimSpace(name) == "" {
			ch.bad(at(), "config/agent-reserved", name)
		}
		if p.Prompt != "" && ch.prompts != nil && !slices.Contains(ch.prompts, p.Prompt) {
			ch.bad(at("prompt"), "config/no-prompt", p.Prompt, prompts.Nearest(p.Prompt, ch.prompts))
		}
		if p.Language != "" {
			ch.oneOf(p.Language, []string{"zh", "en"}, at("language")...)
		}
		if p.Memory != "" {
			ch.oneOf(p.Memory, []string{"keep", Forget}, at("memory")...)
		}
		ch.patterns(p.Tools.Allow, at("tools", "allow")...)
		ch.patterns(p.Tools.Deny, at("tools", "deny")...)
		ch.checkChain(c, p.ASR, roleASR, at(roleASR)...)
		ch.checkChain(c, p.LLM, roleLLM, at(roleLLM)...)
		ch.checkChain(c, p.TTS, roleTTS, at(roleTTS)...)
		ch.checkChain(c, p.Vision, roleVLM, at(roleVLM)...)
	}
	names := c.AgentNames(ch.prompts)
	if ch.prompts == nil || !ch.whole() || !ch.whole("agents") {
		return // the one that is meant may be what could not be read
	}
	for _, id := range slices.Sorted(maps.Keys(c.Devices.ByID)) {
		if agent := c.Devices.ByID[id].Agent; agent != "" && !slices.Contains(names, agent) {
			ch.bad(key("devices", id, "agent"), "config/no-agent", agent, prompts.Nearest(agent, names))
		}
	}
}
