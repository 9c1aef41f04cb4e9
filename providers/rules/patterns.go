package rules

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"xiaozhi/providers"
)

var (
	//go:embed patterns.zh.yaml
	chineseFile string
	//go:embed patterns.en.yaml
	englishFile string

	chinese = sync.OnceValue(func() *phrasebook { return readPhrasebook(chineseFile) })
	english = sync.OnceValue(func() *phrasebook { return readPhrasebook(englishFile) })

	// The expressions of a language are made when it is first heard: they take 0.6 MiB,
	// and 1 ms to make.
	chineseRules = sync.OnceValue(func() []rule { return compile(chinese().Ways, chineseExpr) })
	englishRules = sync.OnceValue(func() []rule {
		return compile(slices.Concat(english().Ways, english().Typed), englishExpr)
	})
)

// phrasebook holds the words of one language: the files patterns.*.yaml say what
// each list is for. It is read-only.
type phrasebook struct {
	Names  map[string]string   `yaml:"names"`
	Ways   []pattern           `yaml:"ways"`
	Typed  []pattern           `yaml:"typed"`
	Before []string            `yaml:"before"`
	After  []string            `yaml:"after"`
	Short  map[string]string   `yaml:"short"`
	Verbs  []string            `yaml:"verbs"`
	Things map[string][]string `yaml:"things"`
}

// pattern holds the ways of saying what is wanted, in the notation of its language.
// The first that fits counts.
type pattern struct {
	Act   act      `yaml:"act"`
	Level level    `yaml:"level"`
	Ways  []string `yaml:"ways"`
}

// rule is a pattern ready for matching: its groups are numbers.
type rule struct {
	expr *regexp.Regexp
	want intent
}

// compile makes one expression of all ways of a pattern, which takes half of
// the memory of one for each way.
func compile(patterns []pattern, expr func(string) string) []rule {
	rules := make([]rule, 0, len(patterns))
	for _, p := range patterns {
		var ways []string
		for _, way := range p.Ways {
			ways = append(ways, expr(way))
		}
		rules = append(rules, rule{regexp.MustCompile(strings.Join(ways, "|")), intent{act: p.Act, level: p.Level}})
	}
	return rules
}

// readPhrasebook reads an embedded file, in which an error is a bug.
func readPhrasebook(file string) *phrasebook {
	b := new(phrasebook)
	d := yaml.NewDecoder(strings.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(b); err != nil {
		panic(fmt.Sprintf("rules: embedded patterns: %v", err))
	}
	for name, text := range b.Names {
		for _, p := range slices.Concat(b.Ways, b.Typed) {
			for i, way := range p.Ways {
				p.Ways[i] = strings.ReplaceAll(way, name, text)
			}
		}
	}
	return b
}

// Phrases lists what may be said to the brain, for a recogniser's grammar:
// (a|b) is one of them, [a] may be left out, <number> is 0 to 100; groups may
// stand inside one another. All are English, whatever lang is: the recogniser
// with a grammar is, and the language of a device is only a hint. The device's
// tools add their own names, after all else, so that a recogniser that takes
// only so many keeps what every speaker must know.
func (b *Brain) Phrases(_ string, tools []providers.ToolSpec) []string {
	var all, phrases []string
	for _, p := range english().Ways {
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
	if i := slices.IndexFunc(words, func(w string) bool { return slices.Contains(english().Verbs, w) }); i > 0 {
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
