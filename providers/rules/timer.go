package rules

import (
	"strconv"
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

// listTimers asks for the timers and reminders that are set.
func (r request) listTimers() (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		return t.has("timers", "timer", "reminders", "reminder", "alarms", "alarm") && t.has("list", "get", "show") && t.free()
	})
	if !ok {
		return r.missing(phraseNoTimer)
	}
	return r.call(t, nil)
}

// timers says what a list of timers holds. It is false for anything but a list
// of objects that say when they are due or how long they last.
func (r request) timers(data any) (providers.Delta, bool) {
	list, ok := data.([]any)
	if !ok || len(list) == 0 {
		return providers.Delta{}, false
	}
	parts := make([]string, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		value := func(key string) string { text, _ := fields[key].(string); return text }
		due, left, length, text := value("due"), value("left"), value("length"), value("text")
		switch {
		case length != "" && left != "" && text != "":
			parts = append(parts, r.say(phraseTimerNamed, r.lang, "text", text, "left", left))
		case length != "" && left != "":
			parts = append(parts, r.say(phraseTimerLeft, r.lang, "length", length, "left", left))
		case due != "" && text != "":
			parts = append(parts, r.say(phraseTimerDue, r.lang, "due", due, "text", text))
		default:
			return providers.Delta{}, false
		}
	}
	all := strings.Join(parts, r.lang.Pick("；", "; "))
	if len(parts) == 1 {
		return r.text(phraseOneTimer, "timers", all)
	}
	return r.text(phraseTimers, "count", strconv.Itoa(len(parts)), "timers", all)
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

// timerUnit returns the unit that a timer's number counts.
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
