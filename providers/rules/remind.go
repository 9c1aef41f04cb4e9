package rules

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/providers"
)

// asked holds the words of a request about reminders, as they were said.
type asked struct {
	when string // the time, words that are known to be one
	what string // what to be reminded of, or which reminder is meant
	rest string // both, in either order, until they were told apart
}

// take notes the words of a named group.
func (a *asked) take(name, words string) {
	words = strings.TrimSpace(strings.NewReplacer("<", "", ">", "").Replace(words))
	switch name {
	case "when":
		a.when = words
	case "what":
		a.what = words
	case "rest":
		a.rest = words
	}
}

// isTimed reports whether a request about reminders can be carried out: it tells the
// time from what it is about, and reads a length of several parts.
func (in *intent) isTimed(now time.Time) bool {
	if in.act == actTimer && in.number == none {
		var err error
		in.length, err = spoken.Duration(in.asked.when)
		return err == nil
	}
	if in.act != actRemind && in.act != actWake {
		return true
	}
	isTime := func(words string) bool {
		_, _, err := spoken.When(words, now)
		return err == nil || errors.Is(err, spoken.ErrPast) || errors.Is(err, spoken.ErrNoDate) || errors.Is(err, spoken.ErrTooLong) // the tool says so
	}
	if in.asked.when != "" {
		if !isTime(in.asked.when) {
			return false
		}
		in.asked.what = withoutLead(in.asked.rest)
		return true
	}
	parts, join := strings.Fields(in.asked.rest), " "
	if text.Of(in.asked.rest) == text.Chinese {
		parts, join = strings.Split(strings.Join(parts, ""), ""), ""
	}
	for n := len(parts); n > 0; n-- { // the time first, as much as is one
		when, what := strings.Join(parts[:n], join), strings.Join(parts[n:], join)
		if what != "" && join == "" && splits.MatchString(when+parts[n]) || what != "" && openRange.MatchString(when) {
			continue
		}
		if (what == "" || join == "" || withoutLead(what) != what) && isTime(strings.TrimPrefix(when, "for ")) {
			in.asked.when, in.asked.what = strings.TrimPrefix(when, "for "), withoutLead(what)
			return true
		}
	}
	for n := 1; n < len(parts); n++ {
		if when := strings.Join(parts[n:], join); isTime(when) {
			in.asked.when, in.asked.what = when, withoutLead(strings.Join(parts[:n], join))
			return true
		}
	}
	return false
}

var (
	// splits is within a number, or before what it counts: of 三十一号, 三十 is no day, and 三点三个人 are three at three.
	splits = regexp.MustCompile(`([0-9]{2}|[一二两三四五六七八九]十|十[一二三四五六七八九]|[^周期拜][0-9一二两三四五六七八九十][个位楼层])$`)
	// openRange ends in a day that may begin another word: 周二到三亚 is a journey.
	openRange = regexp.MustCompile(`^(周|星期|礼拜)[一二三四五六日天](到|至)[一二三四五六日天]$`)
)

// withoutLead drops the word that joins a request with what it is about.
func withoutLead(words string) string {
	for _, joint := range []string{" for", " at", " on", "你"} { // named brunch for eleven
		words = strings.TrimSuffix(words, joint)
	}
	for _, lead := range []string{"named ", "called ", "to ", "that ", "about ", "of ", "and ", "for ", "一下", "，"} {
		if rest, ok := strings.CutPrefix(words, lead); ok {
			return strings.TrimSpace(rest)
		}
	}
	return strings.TrimSpace(words)
}

// original returns words as they stand in what was said, in its capital letters.
func original(words, said string) string {
	if i := strings.Index(strings.ToLower(said), words); i >= 0 && len(strings.ToLower(said)) == len(said) {
		return said[i : i+len(words)]
	}
	return words
}

// remind sets a reminder, where there is a tool for it.
func (r request) remind(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		return t.has("reminder", "reminders", "alarm", "remind") && !t.has("cancel", "delete", "list", "get", "stop", "remove", "snooze") &&
			t.schema.Properties["time"].is("string") && t.schema.Properties["text"].is("string")
	})
	if !ok {
		return r.missing(phraseNoTimer)
	}
	what := original(in.asked.what, r.said)
	if what == "" {
		what = r.say(map[act]string{actRemind: phraseItIsTime, actWake: phraseGetUp}[in.act], r.lang)
	}
	return r.call(t, map[string]any{"time": r.rising(in), "text": what})
}

// rising returns the words for the time of a reminder. To be woken at seven, without more, means in the morning,
// also when seven in the evening is next.
func (r request) rising(in intent) string {
	now := r.options.Now().In(r.zone)
	due, rule, err := spoken.When(in.asked.when, now)
	if in.act != actWake || err != nil || rule != "" || due.Hour() < 17 {
		return in.asked.when
	}
	early := in.asked.when + " in the morning"
	if text.Of(in.asked.when) == text.Chinese {
		early = "早上" + in.asked.when
	}
	if at, _, err := spoken.When(early, now); err != nil || at.Hour() != due.Hour()-12 {
		return in.asked.when
	}
	return early
}

// cancel cancels a reminder, or all.
func (r request) cancel(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool {
		return t.has("timer", "timers", "reminder", "reminders", "alarm") && t.has("cancel", "delete", "remove") && t.free()
	})
	if !ok {
		return r.missing(phraseNoTimer)
	}
	arguments := map[string]any{}
	if what := thatOne(original(in.asked.what, r.said)); what != "" && t.schema.Properties["text"].is("string") {
		arguments["text"] = what
	}
	if in.act == actCancelAll {
		if !t.schema.Properties["all"].is("boolean") {
			return r.missing(phraseNoTimer)
		}
		arguments["all"] = true
	}
	if kind := timerKind(r.said); kind != "" && t.schema.Properties["kind"].is("string") {
		arguments["kind"] = kind
	}
	return r.call(t, arguments)
}

// timerKind tells whether timers or reminders were named; "": neither, or both.
func timerKind(said string) string {
	said = strings.ToLower(said)
	timers := containsAny(said, []string{"timer", "countdown", "定时", "计时"})
	reminders := containsAny(said, []string{"remind", "提醒"})
	switch {
	case timers && !reminders:
		return "timer"
	case reminders && !timers:
		return "reminder"
	}
	return ""
}

// snooze puts off what rings.
func (r request) snooze(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, func(t tool) bool { return t.has("snooze") && t.free() })
	if !ok {
		return r.missing(phraseNoTimer)
	}
	if in.length == 0 || !t.schema.Properties["duration"].is("string") {
		return r.call(t, nil)
	}
	return r.call(t, map[string]any{"duration": spoken.SayInOneUnit(in.length, r.lang)})
}

// which asks which reminder is meant, of those that a result lists behind its words.
func (r request) which(result string) (providers.Delta, bool) {
	i := strings.Index(result, "[")
	if i < 0 {
		return providers.Delta{}, false
	}
	var data any
	if json.Unmarshal([]byte(result[i:]), &data) != nil {
		return providers.Delta{}, false
	}
	list, ok := r.timers(data)
	if ok {
		list.Text = text.Join(r.say(phraseWhichTimer, r.lang), list.Text)
	}
	return list, ok
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
		part := r.timer(func(key string) string { text, _ := fields[key].(string); return text })
		if part == "" {
			return providers.Delta{}, false
		}
		parts = append(parts, part)
	}
	all := strings.Join(parts, r.lang.Pick("；", "; "))
	if len(parts) == 1 {
		return r.text(phraseOneTimer, "timers", all)
	}
	return r.text(phraseTimers, "count", strconv.Itoa(len(parts)), "timers", all)
}

// timer says what one entry of a list holds; "": it cannot be said.
func (r request) timer(value func(key string) string) string {
	due, left, length, text, repeats := value("due"), value("left"), value("length"), value("text"), value("repeats")
	switch {
	case length != "" && left != "" && text != "":
		return r.say(phraseTimerNamed, r.lang, "text", text, "left", left)
	case length != "" && left != "":
		return r.say(phraseTimerLeft, r.lang, "length", length, "left", left)
	case repeats != "" && !strings.Contains(repeats, "=") && text != "":
		return r.say(phraseTimerRepeats, r.lang, "repeats", repeats, "text", text)
	case due != "" && text != "":
		return r.say(phraseTimerDue, r.lang, "due", due, "text", text)
	case due != "":
		return r.say(phraseTimerDue, r.lang, "due", due, "text", r.say(phraseItIsTime, r.lang))
	}
	return ""
}

// timerText adds what a timer is for, where its tool takes that.
func timerText(t tool, arguments map[string]any, what string) {
	if _, set := arguments["text"]; !set && what != "" && t.schema.Properties["text"].is("string") && !slices.Contains(t.schema.Required, "text") {
		arguments["text"] = what
	}
}
