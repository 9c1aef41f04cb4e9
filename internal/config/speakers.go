package config

import (
	"maps"
	"slices"
	"strings"
)

// The values of voice.identify.
const (
	Off = "off"
	On  = "on"
)

// Identifies reports whether it is looked for who is speaking.
func (c *Config) Identifies() bool { return c.Voice.Identify == On }

// AgentFor names the agent that a person talks to on a device, by their name in whatever letters; "": the device's own.
func (c *Config) AgentFor(device, person string) string {
	same := func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(person)) }
	people := c.Devices.ByID[device].People
	for _, name := range slices.Sorted(maps.Keys(people)) {
		if same(name) {
			return people[name]
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(c.Agents)) {
		if slices.ContainsFunc(c.Agents[agent].People, same) {
			return agent
		}
	}
	return ""
}

// GivesRights reports whether somebody of a name, in whatever letters, may do what others may not, or talks to an agent of their own.
func (c *Config) GivesRights(person string) bool {
	same := func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(person)) }
	for _, names := range c.Tools.ConfirmBy {
		if slices.ContainsFunc(names, same) {
			return true
		}
	}
	for _, a := range c.Agents {
		if slices.ContainsFunc(a.People, same) {
			return true
		}
	}
	for _, d := range c.Devices.ByID {
		if slices.ContainsFunc(slices.Collect(maps.Keys(d.People)), same) {
			return true
		}
	}
	return false
}

// MaxPersonName is how many characters the name of a person may have.
const MaxPersonName = 64

// checkSpeakers checks what depends on who is speaking.
func checkSpeakers(ch checker, c *Config) {
	ch.oneOf(c.Voice.Identify, []string{Off, On}, "voice", "identify")
	if c.Identifies() && c.Store.Driver == "none" {
		ch.bad(key("voice", "identify"), "config/identify-no-store")
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.Tools.ConfirmBy)) {
		names := c.Tools.ConfirmBy[pattern]
		if len(names) == 0 {
			ch.bad(key("tools", "confirm_by", pattern), "config/confirm-by-nobody")
		}
		for _, name := range names {
			checkPerson(ch, name, "tools", "confirm_by", pattern)
		}
		if !c.Identifies() && ch.whole("voice") {
			ch.warn(key("tools", "confirm_by", pattern), "config/confirm-by-off")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Devices.ByID)) {
		for _, name := range slices.Sorted(maps.Keys(c.Devices.ByID[id].People)) {
			checkPerson(ch, name, "devices", id, "people")
		}
	}
}

// checkPeople checks the people of an agent: each talks to one.
func checkPeople(ch checker, c *Config, agent string, people []string, at ...string) {
	for _, name := range people {
		checkPerson(ch, name, at...)
		for _, other := range slices.Sorted(maps.Keys(c.Agents)) {
			if other != agent && slices.ContainsFunc(c.Agents[other].People, func(n string) bool { return strings.EqualFold(n, name) }) {
				ch.bad(at, "config/person-twice", name, other)
			}
		}
	}
}

func checkPerson(ch checker, name string, at ...string) {
	if n := len([]rune(strings.TrimSpace(name))); n == 0 || n > MaxPersonName {
		ch.bad(at, "config/person-name", MaxPersonName)
	}
}
