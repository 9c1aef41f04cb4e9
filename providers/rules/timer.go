package rules

import (
	"strings"
	"time"

	"xiaozhi/providers"
)

// setTimer sets a timer, where there is a tool for it.
func (r request) setTimer(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		return t.has("timer", "reminder", "alarm", "countdown", "remind") && !t.has("cancel", "delete", "list", "get", "stop", "remove")
	})
	if !ok {
		return r.missing(phraseNoTimer)
	}
	arguments, ok := timerArguments(t, in.length, r.said)
	if !ok {
		return r.missing(phraseNoTimer)
	}
	return r.call(t, arguments)
}

// timerArguments fills in a timer's length and, where texts are required, what
// was said. It is false for a tool that wants more, or no number.
func timerArguments(t tool, length time.Duration, said string) (map[string]any, bool) {
	number, _ := t.integer("seconds", "duration_seconds", "minutes", "duration", "delay")
	p, ok := t.schema.Properties[number]
	if !ok {
		return nil, false
	}
	arguments := map[string]any{number: int(length / timerUnit(number, p.Description))}
	for _, name := range t.schema.Required {
		switch {
		case name == number:
		case t.schema.Properties[name].is("string"):
			arguments[name] = said
		default:
			return nil, false
		}
	}
	return arguments, true
}

// timerUnit is the unit that a timer's number counts.
func timerUnit(name, description string) time.Duration {
	text := strings.ToLower(name + " " + description)
	switch {
	case strings.Contains(text, "sec") || strings.Contains(text, "秒"):
		return time.Second
	case strings.Contains(text, "min") || strings.Contains(text, "分"):
		return time.Minute
	}
	return time.Second
}
