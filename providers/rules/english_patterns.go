package rules

import (
	"slices"
	"strings"
)

// englishPatterns returns the ways of saying things in English. The first that
// fits counts.
func englishPatterns() []pattern {
	return slices.Concat(
		ways(intent{act: actTime},
			"what time is it", "what is the time", "tell me the time", "tell me what time it is",
			"do you know what time it is", "do you have the time", "what is the current time", "[the] current time"),
		ways(intent{act: actDate},
			"what is the date [today]", "what is todays date", "what date is it [today]", "tell me the date",
			"what day is (it|today)", "what day is it today", "what day of the week is it [today]", "what is today", "which day is it [today]"),
		levelPatterns(volume, "(volume|sound)"),
		levelPatterns(brightness, "(brightness|screen brightness)"),
		loudnessPatterns(),
		lightnessPatterns(),
		ways(intent{act: actStop},
			"stop", "stop (it|that|talking|playing|speaking)", "stop [the] music", "cancel", "cancel (it|that)",
			"never mind", "be quiet", "quiet", "shut up", "that is enough", "enough", "silence"),
		ways(intent{act: actNext},
			"next", "next (song|track|one)", "play [the] next", "play [the] next (song|track|one)",
			"skip", "skip (it|this)", "skip [this] (song|track)"),
		ways(intent{act: actPause}, "pause", "pause (it|playing)", "pause [the] music"),
		ways(intent{act: actTimer},
			"set (a|the) timer [for] <number> (second|seconds|minute|minutes|hour|hours)",
			"set (a|the) <number> (second|minute|hour) timer",
			"(start|set) timer [for] <number> (second|seconds|minute|minutes|hour|hours)",
			"start a timer for <number> (second|seconds|minute|minutes|hour|hours)",
			"timer [for] <number> (second|seconds|minute|minutes|hour|hours)",
			"remind me in <number> (second|seconds|minute|minutes|hour|hours)",
			"wake me [up] in <number> (second|seconds|minute|minutes|hour|hours)"),
		ways(intent{act: actTimers}, "list [my] timers"),
		askingPatterns(),
		talkPatterns(),
	)
}

// levelPatterns are about a level that is called by its name.
func levelPatterns(of level, name string) []pattern {
	at := func(a act) intent { return intent{act: a, level: of} }
	named := func(texts ...string) []string {
		for i, t := range texts {
			texts[i] = strings.ReplaceAll(t, "NAME", name)
		}
		return texts
	}
	return slices.Concat(
		ways(at(actSet), named("(set|change|put|make|turn) [the] NAME [level] [to|at] <number>",
			"turn [the] NAME (up|down) to <number>", "turn (up|down) [the] NAME to <number>",
			"(raise|increase|lower|reduce|decrease) [the] NAME to <number>", "[the] NAME [level] [to|at] <number>")...),
		ways(at(actUp), named("turn [the] NAME up [by <number>]", "turn up [the] NAME [by <number>]", "NAME up",
			"(raise|increase) [the] NAME [by <number>]", "more NAME")...),
		ways(at(actDown), named("turn [the] NAME down [by <number>]", "turn down [the] NAME [by <number>]", "NAME down",
			"(lower|reduce|decrease) [the] NAME [by <number>]", "less NAME")...),
		ways(at(actMax), named("(maximum|max|full) NAME", "NAME [to] [the] (maximum|max)",
			"(set|turn) [the] NAME [up] to [the] (maximum|max|full)", "turn [the] NAME all the way up")...),
		ways(at(actMin), named("(minimum|min) NAME", "NAME [to] [the] (minimum|min)",
			"(set|turn) [the] NAME [down] to [the] (minimum|min)", "turn [the] NAME all the way down")...),
		ways(at(actAsk), named("what is [the|your] [current] NAME [level]", "what NAME is it", "tell me the NAME [level]",
			"how (high|low) is the NAME")...),
	)
}

// loudnessPatterns are about the volume without its name.
func loudnessPatterns() []pattern {
	at := func(a act) intent { return intent{act: a, level: volume} }
	return slices.Concat(
		ways(at(actUp), "louder", "[a] (bit|little) louder", "make it [a bit|a little] louder",
			"(speak|talk|be|play) louder", "speak up", "turn it up", "it is too quiet", "too quiet"),
		ways(at(actDown), "quieter", "softer", "[a] (bit|little) quieter", "make it [a bit|a little] (quieter|softer)",
			"(speak|talk|be|play) (quieter|softer)", "turn it down", "it is too loud", "too loud"),
		ways(at(actMax), "as loud as possible", "as loud as you can"),
		ways(at(actMin), "mute", "mute (it|yourself)", "mute [the] (volume|sound)", "turn off the sound", "turn the sound off"),
		ways(at(actAsk), "how loud (are you|is it)"),
	)
}

// lightnessPatterns are about the brightness of the screen without its name.
func lightnessPatterns() []pattern {
	at := func(a act) intent { return intent{act: a, level: brightness} }
	return slices.Concat(
		ways(at(actUp), "brighter", "make (it|the screen) [a bit|a little] brighter", "[the] screen is too dark", "brighten the screen"),
		ways(at(actDown), "darker", "dimmer", "make (it|the screen) [a bit|a little] (darker|dimmer)", "dim the screen", "[the] screen is too bright"),
		ways(at(actAsk), "how bright (are you|is it|is the screen)"),
	)
}

// askingPatterns are about the device and what it sees.
func askingPatterns() []pattern {
	return slices.Concat(
		ways(intent{act: actHelp}, "what can you do", "what can i (say|ask)", "what can i ask you", "what do you do", "how can you help [me]", "help", "help me"),
		ways(intent{act: actBattery},
			"[the] battery", "battery (level|status)", "what is the battery [level]", "how much battery is left", "how much battery do you have",
			"how full is the battery", "is the battery (low|full|charging)", "are you charging"),
		ways(intent{act: actStatus}, "device status", "[what is] (your|the) status", "what is the device status", "how is the device"),
		ways(intent{act: actPhoto},
			"take a (photo|picture)", "take a (photo|picture) of (this|that|me)", "what do you see", "what can you see",
			"tell me what you see", "describe what you see", "look at (this|that)", "what is this", "what is that",
			"what am i holding", "what is in front of you"),
	)
}

// talkPatterns returns the patterns of greetings, thanks and the like.
func talkPatterns() []pattern {
	return slices.Concat(
		ways(intent{act: actExit},
			"good bye", "bye", "bye bye", "see you", "see you later", "good night", "talk to you later", "hang up",
			"exit", "quit", "go to sleep", "that is all", "end [the|this] conversation"),
		ways(intent{act: actHello}, "hello", "hello there", "hi", "hi there", "good (morning|afternoon|evening)"),
		ways(intent{act: actThanks}, "thanks", "thank you", "thank you (very|so) much", "thanks a lot"),
		ways(intent{act: actWho}, "who are you", "what is your name", "what are you", "introduce yourself", "tell me about yourself"),
	)
}
