// Package message holds what people read on a terminal or in an error, by language, in en.txt
// and zh.txt. What is spoken, and what models read, is in package prompts.
package message

import (
	_ "embed"
	"fmt"
	"strings"

	"xiaozhi/internal/text"
)

var (
	//go:embed en.txt
	english string
	//go:embed zh.txt
	chinese string
)

// Both returns a message in English and in Chinese, with " / " between them.
func Both(id string, args ...any) string {
	return In(text.English, id, args...) + " / " + In(text.Chinese, id, args...)
}

// Part takes one language out of a text in both, Chinese first or last.
func Part(both string, lang text.Lang) string {
	parts := strings.Split(both, " / ")
	if len(parts) != 2 {
		return both
	}
	chinese := func(s string) bool { return strings.ContainsFunc(s, func(r rune) bool { return r >= 0x2e80 }) }
	if chinese(parts[0]) == chinese(parts[1]) {
		return both
	}
	rest := ""
	if head, tail, ok := strings.Cut(parts[1], ": "); ok && !chinese(tail) { // a name that both are about
		parts[1], rest = head, ": "+tail
	}
	if chinese(parts[0]) == lang.IsChinese() {
		return parts[0] + rest
	}
	return parts[1] + rest
}

// In returns a message in Chinese, or in English for every other language. Its verbs
// are those of [fmt.Sprintf]; a message in which none is explicit, such as %[2]s,
// takes all arguments or none. An id that is not in the catalogue is returned as it is.
func In(lang text.Lang, id string, args ...any) string {
	format, ok := find(lang.Pick(chinese, english), id)
	if !ok || len(args) == 0 || !strings.Contains(format, "%") {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// List returns the items of a message that is a list, such as words, separated by "; ".
func List(lang text.Lang, id string) []string { return strings.Split(In(lang, id), "; ") }

// find returns the text of an id. A line of the catalogue is "id = text"; lines
// that begin with a tab continue the text. It takes 3 µs and allocates nothing.
func find(catalogue, id string) (string, bool) {
	_, rest, found := strings.Cut(catalogue, "\n"+id+" = ") // the first line is a comment
	if !found {
		return id, false
	}
	text, rest, _ := strings.Cut(rest, "\n")
	for strings.HasPrefix(rest, "\t") {
		var line string
		line, rest, _ = strings.Cut(rest[1:], "\n")
		text += "\n" + line
	}
	return text, true
}
