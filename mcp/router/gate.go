package router

import (
	"maps"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// Rules are patterns of the settings, as [mcp.Fits] reads them.
type Rules struct {
	Allow   []string // where there are any, nothing else is offered
	Deny    []string // what is not offered at all
	Confirm []string // what needs the spoken yes of the person in front of the device

	ConfirmBy map[string][]string // who alone may say that yes, by pattern: names of people. Nobody changes it
}

// Gate decides about every call of a tool, whoever makes it and whatever runs it: a
// [Router] asks it for the calls of a conversation, the gateway for all others. It does
// not change, and what it decides depends on nothing but the [Case].
type Gate struct{ rules Rules }

// NewGate returns the gate of these rules.
func NewGate(rules Rules) Gate { return Gate{rules} }

// Case describes a call to the gate.
type Case struct {
	Tool      mcp.Tool
	Names     []string // what it is called beside Tool.Name
	By        mcp.Asker
	Consented bool   // the person in front of the device has said yes to this very call
	Person    string // who that is, known by the voice; "" if that is not known
}

// Decision is the answer of the gate to a call.
type Decision int

// The decisions. The zero value denies.
const (
	Denied Decision = iota
	Asks            // the person in front of the device must say yes first
	Allowed
)

// Verdict is a decision and what it is based on.
type Verdict struct {
	Decision Decision
	Why      string   // a setting and its pattern, or a hint of the tool; "" if nothing is against the call
	By       []string // names of the people who may say yes; nil: whoever speaks
	id       string   // of the reason for people, if it is denied
}

// Decide says what becomes of a call.
func (g Gate) Decide(c Case) Verdict {
	if why, hidden := g.hides(c.Tool, c.Names); hidden {
		return Verdict{Decision: Denied, Why: why, id: "router/denied"}
	}
	why, by, asks := g.asks(c.Tool, c.Names)
	switch {
	case !asks:
		return Verdict{Decision: Allowed}
	case c.By == mcp.ByTool:
		return Verdict{Decision: Denied, Why: why, id: "router/ask-directly"}
	case c.By != mcp.ByModel && c.By != mcp.ByOutside, by != nil && len(by) == 0:
		return Verdict{Decision: Denied, Why: why, id: "router/ask-nobody"}
	case c.Consented && by != nil && !slices.ContainsFunc(by, func(name string) bool { return strings.EqualFold(name, c.Person) }):
		return Verdict{Decision: Denied, Why: why, By: by, id: "router/ask-others"}
	case c.Consented:
		return Verdict{Decision: Allowed, Why: why}
	}
	return Verdict{Decision: Asks, Why: why, By: by}
}

// Hides reports whether a tool is not offered at all.
func (g Gate) Hides(t mcp.Tool, names ...string) bool {
	_, hidden := g.hides(t, names)
	return hidden
}

// hides says which rule hides a tool, by its own name or one of the others.
func (g Gate) hides(t mcp.Tool, names []string) (why string, hidden bool) {
	if pattern, ok := mcp.FitsTool(g.rules.Deny, t, names...); ok {
		return "deny: " + pattern, true
	}
	if len(g.rules.Allow) > 0 {
		if _, ok := mcp.FitsTool(g.rules.Allow, t, names...); !ok {
			return "allow", true
		}
	}
	return "", false
}

// asks reports whether somebody must say yes to a call of a tool, and who may. What a tool of
// another server does is not known where it says nothing: it may delete or buy.
func (g Gate) asks(t mcp.Tool, names []string) (why string, by []string, asks bool) {
	for _, pattern := range slices.Sorted(maps.Keys(g.rules.ConfirmBy)) {
		if _, ok := mcp.FitsTool([]string{pattern}, t, names...); !ok {
			continue
		}
		if may := g.rules.ConfirmBy[pattern]; why == "" {
			why, by = "tools.confirm_by: "+pattern, append([]string{}, may...)
		} else { // whoever all the rules name
			why += ", " + pattern
			by = slices.DeleteFunc(by, func(name string) bool {
				return !slices.ContainsFunc(may, func(other string) bool { return strings.EqualFold(name, other) })
			})
		}
	}
	if why != "" {
		return why, by, true
	}
	why, asks = g.asksAnybody(t, names)
	return why, nil, asks
}

// asksAnybody reports whether whoever speaks must say yes to a call of a tool.
func (g Gate) asksAnybody(t mcp.Tool, names []string) (why string, asks bool) {
	if pattern, ok := mcp.FitsTool(g.rules.Confirm, t, names...); ok {
		return "tools.confirm: " + pattern, true
	}
	says := func(hint *bool, is bool) bool { return hint != nil && *hint == is }
	switch {
	case t.Annotations.Destroys():
		return "destructiveHint", true
	case !strings.HasPrefix(t.Source, mcp.SourceExternal), t.Trusted,
		says(t.Annotations.ReadOnly, true), says(t.Annotations.Destructive, false):
		return "", false
	}
	return "neither readOnlyHint nor destructiveHint: false, and its server is not trusted", true
}

// refusal tells what a rule hides from what somebody would have to allow.
func (v Verdict) refusal() Refusal {
	if v.id == "router/denied" {
		return RefusedDenied
	}
	return RefusedConsent
}

// Refusal returns why a call of a tool was denied, for who asked.
func (v Verdict) Refusal(tool string, lang text.Lang) string {
	if v.id == "router/ask-others" {
		return message.In(lang, v.id, tool, text.List(v.By, lang))
	}
	return message.In(lang, v.id, tool, v.Why)
}
