package main

import (
	"maps"
	"slices"
	"strings"

	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
)

// wrongWord says that a word of a command line is none of those that are known, and which was meant, or all of them.
func wrongWord[V any](word string, known map[string]V) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return name == "" })
	if meant, ok := prompts.Misspelt(word, names); ok {
		return message.Both("command/meant", word, meant)
	}
	return message.Both("command/one-of", word, strings.Join(names, ", "))
}
