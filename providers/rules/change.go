package rules

import (
	"errors"
	"strings"
	"time"

	"xiaozhi/internal/text/spoken"
	"xiaozhi/providers"
)

// isChange reports whether what a timer is changed to, or by, can be read.
func (in *intent) isChange(now time.Time) bool {
	if by := in.slots["by"]; by != "" {
		in.slots["by"] = onlyLength.Replace(by)
		_, err := spoken.Duration(in.slots["by"])
		return err == nil
	}
	words := strings.TrimPrefix(in.asked.when, "for ")
	for _, end := range []string{" instead", " rather", " please", "吧"} {
		words = strings.TrimSuffix(words, end)
	}
	_, _, err := spoken.Reset(words, now.Add(12*time.Hour), now)
	if err != nil && !errors.Is(err, spoken.ErrPast) {
		_, _, err = spoken.When(words, now)
	}
	in.asked.when = words
	return err == nil || errors.Is(err, spoken.ErrPast)
}

// onlyLength leaves of two more minutes what is a length of time.
var onlyLength = strings.NewReplacer(" more", "", " extra", "", "another ", "a ", "extra ", "")

// change changes when a timer or reminder is due, where there is a tool for it.
func (r request) change(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		return t.has("timer", "timers", "reminder", "alarm") && t.has("change", "move", "update") && t.free() && t.schema.Properties["time"].is("string")
	})
	if !ok {
		return r.missing(phraseNoTimer)
	}
	arguments := map[string]any{}
	if what := thatOne(original(in.asked.what, r.said)); what != "" && t.schema.Properties["text"].is("string") {
		arguments["text"] = what
	}
	switch by := in.slots["by"]; {
	case by != "" && !t.schema.Properties["add"].is("string"):
		return r.missing(phraseNoTimer)
	case by != "" && in.about == "earlier":
		arguments["add"] = "-" + by
	case by != "":
		arguments["add"] = by
	default:
		arguments["time"] = in.asked.when
	}
	if kind := changedKind(r.said); kind != "" && t.schema.Properties["kind"].is("string") {
		arguments["kind"] = kind
	}
	return r.call(t, arguments)
}

// changedKind is [timerKind], where alarms are reminders: they are for a time of day.
func changedKind(said string) string {
	said = strings.ToLower(said)
	if kind := timerKind(said); kind != "" || !containsAny(said, []string{"alarm", "闹钟", "闹铃"}) {
		return kind
	}
	return "reminder"
}

// thatOne drops the words that only point at something: 健身那个 is 健身.
func thatOne(words string) string {
	for changed := true; changed; {
		changed = false
		for _, word := range []string{"那个", "这个", "那一个", "这一个", "的", "我的", "那条", "这条"} {
			for _, cut := range []func(string, string) (string, bool){strings.CutPrefix, strings.CutSuffix} {
				if rest, ok := cut(words, word); ok {
					words, changed = rest, true
				}
			}
		}
		for _, word := range []string{"the ", "my ", "that ", "this ", "our "} {
			if rest, ok := strings.CutPrefix(strings.ToLower(words), word); ok {
				words, changed = words[len(words)-len(rest):], true
			}
		}
	}
	return strings.TrimSpace(words)
}
