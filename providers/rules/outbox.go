package rules

import (
	_ "embed"
	"regexp"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/providers"
)

var (
	//go:embed outbox.zh.yaml
	chineseOutbox string
	//go:embed outbox.en.yaml
	englishOutbox string
)

// What is asked about what a speaker says unasked.
const (
	actQuiet     act = "quiet"     // nothing is to be said unasked, for a while
	actLoud      act = "loud"      // it may be again
	actRoutine   act = "routine"   // something is to be done again and again
	actRoutines  act = "routines"  // what there is of that
	actUnroutine act = "unroutine" // one of it is to be done no more
)

// isOutbox reports whether a request about what is said unasked can be read.
func (in *intent) isOutbox(now time.Time) bool {
	switch in.act {
	case actQuiet:
		if words, ok := in.slots["length"]; ok {
			var err error
			in.length, err = spoken.Duration(words)
			return err == nil
		}
		if in.asked.when == "" {
			return true
		}
		_, rule, err := spoken.When(in.asked.when, now)
		return err == nil && rule == ""
	case actRoutine:
		if in.asked.rest != "" {
			in.asked.when = "every " + in.asked.rest
		}
		_, rule, err := spoken.When(in.asked.when, now)
		return err == nil && rule != "" && in.asked.what != ""
	default:
		return true
	}
}

// outbox carries out a request about what is said unasked.
func (r request) outbox(in intent) (providers.Delta, bool) {
	with := func(thing string, verbs ...string) (tool, bool) {
		return find(r.tools, func(t tool) bool { return t.has(thing, thing+"s") && t.has(verbs...) })
	}
	arguments := map[string]any{}
	var t tool
	var ok bool
	switch in.act {
	case actQuiet:
		t, ok = with("quiet", "be", "begin", "start")
		switch {
		case in.length > 0:
			arguments["duration"] = spoken.SayInOneUnit(in.length, r.lang)
		case in.asked.when != "":
			arguments["until"] = in.asked.when
		}
	case actLoud:
		t, ok = with("quiet", "end", "stop")
	case actRoutine:
		return r.routine(in.asked.when, r.task(in))
	case actRoutines:
		t, ok = with("routine", "list", "get")
	default:
		t, ok = with("routine", "cancel", "delete", "remove")
		if what := original(in.asked.what, r.said); what != "" {
			arguments["name"] = what
		}
	}
	for name := range arguments {
		ok = ok && t.schema.Properties[name].is("string")
	}
	if !ok {
		return providers.Delta{}, false
	}
	return r.call(t, arguments)
}

// tellings begin what is to be told, which changes from day to day: the weather, and not that it is time for something.
var tellings = regexp.MustCompile(`(?i)\b(tell (?:me|us)) (?:the|what|how|whether|if|about|some|a|my)\b|(告诉我们?)[^去要该吃喝做起来]`)

// telling makes a routine of what sounds like a reminder that comes again and again: every day at 7 tell me the weather.
func (r request) telling(in intent) (providers.Delta, bool) {
	verb := tellings.FindStringSubmatch(r.said)
	_, rule, err := spoken.When(in.asked.when, r.options.Now().In(r.zone))
	if verb == nil || err != nil || rule == "" || in.asked.what == "" {
		return providers.Delta{}, false
	}
	what := original(in.asked.what, r.said)
	if verb[1] != "" {
		what = verb[1] + " " + what
	} else {
		what = verb[2] + what
	}
	return r.routine(in.asked.when, what)
}

// routine has something done again and again, where there is a tool for it.
func (r request) routine(when, what string) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		return t.has("routine") && t.has("set", "add", "create") && t.schema.Properties["when"].is("string") && t.schema.Properties["what"].is("string")
	})
	if !ok {
		return providers.Delta{}, false
	}
	return r.call(t, map[string]any{"when": when, "what": what})
}

// task returns the words of what is to be done, with the verb that was said.
func (r request) task(in intent) string {
	what := original(in.asked.what, r.said)
	at := strings.Index(strings.ToLower(r.said), in.asked.what)
	if at < 0 || in.asked.when == "" {
		return what
	}
	before := strings.ToLower(r.said[:at])
	if i := strings.Index(before, in.asked.when); i >= 0 {
		before = before[i+len(in.asked.when):]
	}
	before = strings.Trim(before, " ,，都就")
	if r.lang.IsChinese() {
		return before + what
	}
	return strings.TrimSpace(before + " " + what)
}

// withoutNote returns what is to be done now, of the note by which a routine is begun; else the words as they are.
func (b *Brain) withoutNote(said string) string {
	for _, lang := range []text.Lang{text.Chinese, text.English} {
		if what, is := strings.CutPrefix(said, b.say(phraseRoutine, lang, "prompt", "")); is {
			return what
		}
	}
	return said
}
