package rules

import (
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// act is the action that a request asks for.
type act string

const (
	actTime   act = "time"
	actDate   act = "date"
	actSet    act = "set"  // a level, to number
	actUp     act = "up"   // a level, by number or by a step
	actDown   act = "down" // a level, by number or by a step
	actMax    act = "max"
	actMin    act = "min"
	actAsk    act = "ask" // what a level is
	actStop   act = "stop"
	actNext   act = "next"
	actPause  act = "pause"
	actTimer  act = "timer"
	actTimers act = "timers" // what timers and reminders there are
	actRemind act = "remind" // a reminder for a time of day
	actWake   act = "wake"   // the same, to get up
	actSnooze act = "snooze"
	actWhen   act = "when"   // a reminder without a time
	actCancel act = "cancel" // a timer or reminder

	actCancelAll act = "cancel_all" // timers, reminders or both
	actChange    act = "change"     // when a timer or reminder is due

	actDay      act = "day"      // when a day is, and how far away
	actUntil    act = "until"    // how far away the next such day is
	actWeeks    act = "weeks"    // the same, in weeks
	actThen     act = "then"     // what time it will be
	actYear     act = "year"     // which it is
	actMonth    act = "month"    // which it is
	actLunar    act = "lunar"    // a day of the Chinese calendar
	actZodiac   act = "zodiac"   // the animal of a year
	actTerm     act = "term"     // the next solar term
	actFestival act = "festival" // what is celebrated
	actSum      act = "sum"
	actConvert  act = "convert"  // a quantity to another unit
	actAgain    act = "again"    // what was asked before, of another day
	actTimeIn   act = "time_in"  // what time it is somewhere else
	actUntilAt  act = "until_at" // how long until a time of day
	actLeap     act = "leap"     // whether a year is a leap year
	actDaysIn   act = "days_in"  // how many days a month or a year has
	actBetween  act = "between"  // how many days are between two
	actWeek     act = "week"     // the number of the week
	actAge      act = "age"      // of somebody born in a year
	actLeft     act = "left"     // how long a timer has left

	actPlay   act = "play"   // a song, or any
	actResume act = "resume" // the music
	actSongs  act = "songs"  // what there is to play

	actHelp    act = "help"
	actBattery act = "battery"
	actStatus  act = "status"
	actPhoto   act = "photo"
	actForget  act = "forget" // what was said

	actEnrol    act = "enrol"    // the voice of who speaks
	actRemember act = "remember" // something for good
	actRecall   act = "recall"   // what is remembered
	actUnlearn  act = "unlearn"  // one thing that is remembered
	actErase    act = "erase"    // everything that is remembered

	actDocuments act = "documents" // what documents say about something

	actWeather act = "weather"
	actNews    act = "news"
	actDetails act = "details" // of a headline
	actSearch  act = "search"  // the web
	actNetwork act = "network" // what the device is connected to

	actHomeSwitch act = "home_switch" // things at home
	actHomeSet    act = "home_set"
	actHomeMedia  act = "home_media"
	actHomeScene  act = "home_scene"
	actHomeState  act = "home_state"

	actExit   act = "exit"
	actHello  act = "hello"
	actThanks act = "thanks"
	actWho    act = "who"
)

// atHome reports whether it is about things at home.
func (a act) atHome() bool {
	return slices.Contains([]act{actHomeSwitch, actHomeSet, actHomeMedia, actHomeScene, actHomeState}, a)
}

// social reports whether it is what people say to each other, also where something at home has that name: good night.
func (in intent) social() bool {
	return slices.Contains([]act{actExit, actHello, actThanks, actWho}, in.act)
}

// level names a quantity that can be set, raised and lowered.
type level string

const (
	volume     level = "volume"
	brightness level = "brightness"
)

// topic names a subject that a request can follow up: make it ten is about the timer before it.
type topic string

const (
	aboutTimers topic = "timers"
	aboutNews   topic = "news"
)

// maxSaid is the longest request that is read, in bytes: what is longer is no request that a rule covers.
const maxSaid = 2000

// none is the number of an intent that came without one.
const none = -1

// intent is something understood.
type intent struct {
	act    act
	level  level         // of actSet … actAsk
	number int           // none when not said
	share  bool          // the number was said in percent
	length time.Duration // of actTimer and actSnooze; 0: not said
	asked  asked         // about reminders
	slots  slots         // what else was said, by the names in its pattern
	by     int           // of actUp and actDown: how much, where no number was said; 0: the usual step
	as     string        // the expression that a sum stands for
	about  string        // what of the weather is asked for, and the like
	after  topic         // it is understood only right after a request about this
}

// fast reports whether the fast path may take it from a language model.
func (in intent) fast() bool {
	return slices.Contains([]act{actTime, actStop, actNext, actSet, actUp, actDown, actMax, actMin, actAsk}, in.act)
}

// understand finds the rule for a text. Only a text that says nothing else is
// understood, so that "what is the volume of a sphere" is not about loudness.
func (b *Brain) understand(said string, zone *time.Location, s scope) (intent, bool) {
	return b.understandAfter("", said, zone, s)
}

// understandAfter is understand right after a request about a topic, when more is understood.
func (b *Brain) understandAfter(before topic, said string, zone *time.Location, s scope) (intent, bool) {
	if len(said) > maxSaid {
		return intent{}, false
	}
	if in, ok := written(said); ok && s == everything {
		return in, true
	}
	if strings.ContainsAny(said, "(（") {
		s = fastOnly // without its parentheses it would be another sum
	}
	if text.Of(said) == text.Chinese {
		k := chinese(s)
		for _, t := range k.chineseForms(said, b.options.Name) {
			if in, ok := b.match(k.rules, before, t, chineseNumber, zone); ok {
				return in.timed(chineseUnit(t))
			}
		}
		return b.covers(said, zone, s)
	}
	k := english(s)
	for _, t := range k.englishForms(said, b.options.Name) {
		if in, ok := b.match(k.rules, before, t+" ", digits, zone); ok {
			return in.timed(englishUnit(t))
		}
	}
	return b.covers(said, zone, s)
}

// match takes the first rule that covers the whole text. A number that was said
// but cannot be read is no match; nor is a reminder without a time that can be.
func (b *Brain) match(rules []rule, before topic, text string, number func(string) (int, bool), zone *time.Location) (intent, bool) {
	for _, r := range rules {
		if r.want.after != "" && r.want.after != before {
			continue
		}
		groups := r.expr.FindStringSubmatch(text)
		if groups == nil {
			continue
		}
		in := r.want
		in.number = none
		if in.by > 0 {
			in.number = in.by
		}
		for i, name := range r.expr.SubexpNames() {
			g := groups[i]
			if i == 0 || g == "" {
				continue
			}
			if name != "" {
				in.take(name, g)
				continue
			}
			bare := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(g, "%"), "个百分点"), "百分之")
			n, ok := number(bare)
			if !ok {
				return intent{}, false
			}
			in.number, in.share = n, bare != g
		}
		if in.complete(b.options.Now().In(zone), text) {
			return in, true
		}
	}
	return intent{}, false
}

// timed returns a timer its length; without one it is not understood.
func (in intent) timed(unit time.Duration) (intent, bool) {
	if in.length > 0 || in.act != actTimer && (in.act != actSnooze || in.number == none) {
		return in, true
	}
	in.length = time.Duration(in.number) * unit
	return in, in.number > 0 && unit > 0
}

// Phrases lists what may be said to the brain, for a recogniser's grammar:
// (a|b) is one of them, [a] may be left out, <number> is 0 to 100; groups may
// stand inside one another. All are English, whatever lang is: the recogniser
// with a grammar is, and the language of a device is only a hint. The device's
// tools add their own names, after all else, so that a recogniser that takes
// only so many keeps what every speaker must know.
func (b *Brain) Phrases(_ string, tools []providers.ToolSpec) []string {
	var all, phrases []string
	for _, p := range english(fastOnly).Ways {
		all = append(all, p.Ways...)
	}
	for _, t := range readTools(tools) {
		all = append(all, toolPhrases(t)...)
	}
	seen := map[string]bool{}
	for _, p := range all {
		if !seen[p] {
			seen[p] = true
			phrases = append(phrases, p)
		}
	}
	return phrases
}

// toolPhrases returns the ways to say a tool's name: as it is, and with the verb
// first. A tool that needs more than one number cannot be spoken.
func toolPhrases(t tool) []string {
	_, numbered := t.integer("value", "level")
	words := spokenWords(t)
	switch {
	case !speakable(words) || !t.free() && !numbered:
		return nil
	case t.has("volume", "brightness") && numbered, slices.Equal(words, []string{"exit"}):
		return nil // the patterns have these
	}
	value := ""
	switch {
	case numbered && t.free():
		value = " [to <number>]"
	case numbered:
		value = " [to] <number>"
	}
	phrases := []string{strings.Join(words, " ") + value}
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(english(fastOnly).Verbs, w) }); i > 0 {
		verb, object := words[i:], words[:i]
		if verb[0] == "set" || verb[0] == "get" {
			object = slices.Concat(object, verb[1:])
			verb = verb[:1]
		}
		phrases = append(phrases, strings.Join(verb, " ")+" [the] "+strings.Join(object, " ")+value)
	}
	return phrases
}

// speakable reports whether there are words, all of letters only, that are long
// enough together not to be heard in any noise.
func speakable(words []string) bool {
	return len(strings.Join(words, "")) >= 3 && !slices.ContainsFunc(words, func(w string) bool {
		return strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != ""
	})
}
