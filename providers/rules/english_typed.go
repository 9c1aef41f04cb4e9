package rules

import (
	"slices"
	"strings"
)

// englishTyped are further ways of saying things that are understood, but left
// out of the recogniser's grammar: every sentence there makes it more likely
// that another one is heard wrong. <words> is anything at all.
func englishTyped() []pattern {
	const unit = "(second|seconds|minute|minutes|hour|hours)"
	return slices.Concat(
		ways(intent{act: actTime}, "the time", "do you know the time", "tell me the current time", "what is the time of day"),
		ways(intent{act: actDate},
			"what is the day [today]", "what weekday is it [today]", "which day of the week is it [today]", "tell me todays date",
			"todays date", "what date is today", "what is the current date"),
		typedLevels(volume, "(volume|sound)"),
		typedLevels(brightness, "([screen] brightness)"),
		ways(intent{act: actDown, level: volume}, "(speak|talk) more (quietly|softly)"),
		ways(intent{act: actUp, level: volume}, "(speak|talk) more loudly"),
		ways(intent{act: actStop}, "nevermind", "forget it", "forget about it"),
		ways(intent{act: actNext}, "skip this one", "another song", "play another song"),
		ways(intent{act: actPause}, "pause [the|this] song"),
		ways(intent{act: actTimer},
			"start a <number> "+unit+" timer", "set an alarm for <number> "+unit, "set an alarm in <number> "+unit,
			"remind me in <number> "+unit+" (to|that|about) <words>", "remind me to <words> in <number> "+unit),
		typedTimers(),
		ways(intent{act: actHelp}, "what are you able to do", "tell me what you can do", "what else can you do", "what are your functions"),
		ways(intent{act: actBattery}, "how much battery do you have left", "how much battery do we have [left]"),
		ways(intent{act: actPhoto},
			"take a (photo|picture) and tell me what (you see|it is|this is|that is)", "look at (this|that) and tell me what it is"),
		ways(intent{act: actExit}, "see you tomorrow", "see you (soon|then)"),
	)
}

// typedTimers returns the ways to ask what timers and reminders there are.
func typedTimers() []pattern {
	texts := []string{
		"(list|show|show me|tell me|read|read out|check|give me) [all] [of] [the|my] NAMES [i have|i set|i have set]",
		"(list|show|show me|tell me|read|read out|check|give me) [all] [of] [the|my] [current|active|running|remaining|open] NAMES",
		"(what|which) NAMES (do i have|have i got|have i set|did i set|are there) [set|running|left]",
		"(what|which) NAMES are (set|on|active|running|left|open|going|still running|still to come)",
		"what are [all] [of] (the|my) [current|active|running|remaining|open] NAMES", "[what about] my NAMES",
		"how many NAMES (do i have|have i got|have i set|did i set|are there|are set|are running|are left) [set|running|left]",
		"do i have [any|a] NAMES [set|running|left]", "(are there|is there) [any|a] NAMES [set|running|left]", "(are|is) any NAMES (set|running|left)",
		"how (long|much time) is left on (the|my) NAMES", "how (long|much time) (does|do) (the|my) NAMES have left",
	}
	const names = "(timer|timers|alarm|alarms|reminder|reminders) [and|or] [timers|alarms|reminders]"
	for i, t := range texts {
		texts[i] = strings.ReplaceAll(t, "NAMES", names)
	}
	return ways(intent{act: actTimers}, texts...)
}

// typedLevels are further ways to change a level that is called by its name.
func typedLevels(of level, name string) []pattern {
	at := func(a act, texts ...string) []pattern {
		for i, t := range texts {
			texts[i] = strings.ReplaceAll(t, "NAME", name)
		}
		return ways(intent{act: a, level: of}, texts...)
	}
	return slices.Concat(
		at(actSet, "put [the] NAME on <number>"),
		at(actUp, "[turn] [the] NAME (plus|up) [by] <number>", "crank up the NAME"),
		at(actDown, "[turn] [the] NAME (minus|down) [by] <number>"),
	)
}
