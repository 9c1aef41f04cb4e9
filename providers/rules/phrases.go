package rules

import (
	"slices"
	"strings"

	"xiaozhi/providers"
)

// Phrases lists what may be said to the brain, for a recogniser's grammar:
// (a|b) is one of them, [a] may be left out, <number> is 0 to 100; groups may
// stand inside one another. All are English, whatever lang is: the recogniser
// with a grammar is, and the language of a device is only a hint. The device's
// tools add their own names, after all else, so that a recogniser that takes
// only so many keeps what every speaker must know.
func (b *Brain) Phrases(_ string, tools []providers.ToolSpec) []string {
	var phrases []string
	seen := map[string]bool{}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			phrases = append(phrases, p)
		}
	}
	for _, p := range english().Ways {
		add(p.text)
	}
	for _, t := range readTools(tools) {
		for _, p := range toolPhrases(t) {
			add(p)
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
	if i := slices.IndexFunc(words, isVerb); i > 0 {
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

// isVerb reports whether a word of a tool's name is what is done with the others.
func isVerb(word string) bool { return slices.Contains(english().Verbs, word) }
