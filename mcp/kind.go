package mcp

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"unicode"
)

// ExplainKind decides whether the result of t is awaited, and says why in a few words for people.
// It is what t declares; else the override whose pattern (path.Match on the tool's own name) fits,
// an exact name before a pattern and a longer pattern before a shorter; else its annotations
// (readOnlyHint: query); else its name (set_volume, turn_on, play: control); else query, since
// waiting is the safe mistake.
func ExplainKind(t Tool, overrides map[string]Kind) (kind Kind, why string) {
	if t.Kind == Control || t.Kind == Query {
		return t.Kind, "the tool declares it"
	}
	if kind, pattern, ok := OverrideOf(t.Name, overrides); ok {
		return kind, "tools.kinds: " + pattern
	}
	if t.Annotations.ReadOnly != nil && *t.Annotations.ReadOnly {
		return Query, "readOnlyHint"
	}
	if word, ok := orderIn(t.Name); ok {
		return Control, "its name begins with " + word
	}
	return Query, "nothing says that it is a control"
}

// OverrideOf returns the kind that overrides give to a name, with the pattern
// that did, in the order of [ExplainKind].
func OverrideOf(name string, overrides map[string]Kind) (kind Kind, pattern string, ok bool) {
	if kind, ok := overrides[name]; ok {
		return kind, name, true
	}
	var best string
	for pattern := range overrides {
		fits, err := path.Match(pattern, name)
		if err != nil || !fits {
			continue
		}
		if best == "" || len(pattern) > len(best) || (len(pattern) == len(best) && pattern < best) {
			best = pattern
		}
	}
	kind, ok = overrides[best]
	return kind, best, ok && best != ""
}

// orderIn is the word that makes a tool an order, by its name's last part. One that
// returns a picture is none, whatever it is called.
func orderIn(name string) (word string, ok bool) {
	words := NameWords(name[strings.LastIndexByte(name, '.')+1:])
	isPicture := func(word string) bool {
		return slices.Contains([]string{"camera", "photo", "picture", "snapshot", "screenshot"}, word)
	}
	if len(words) == 0 || strings.Contains(name, ".camera.") || slices.ContainsFunc(words, isPicture) {
		return "", false
	}
	return words[0], slices.Contains(strings.Fields(orders), words[0])
}

// orders are the words that the name of an order begins with.
//
//go:embed orders.txt
var orders string

// NameWords returns the words of a name in lower case: it splits at everything
// that is no letter or digit, and before capitals.
func NameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case lower && unicode.IsUpper(r):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		lower = unicode.IsLower(r)
	}
	return strings.Fields(strings.ToLower(b.String()))
}
