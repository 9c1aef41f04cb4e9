package memory

import (
	"embed"
	"iter"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed words.*.yaml
var wordFiles embed.FS

// lexicon holds what is known of one language.
type lexicon struct {
	Words      string // that are in so many sentences that nothing is found by them
	Characters string // the same
	Asks       string
	Orders     string
	Who        string
	End        string
	Forms      []form

	common       map[string]bool
	asks, orders *regexp.Regexp
}

// lexicons reads those of all languages when one is first needed. The files are the program's own: tests read them.
var lexicons = sync.OnceValue(func() (all []*lexicon) {
	for _, name := range []string{"words.zh.yaml", "words.en.yaml"} {
		l := &lexicon{common: map[string]bool{}}
		data, err := wordFiles.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(data, l)
		}
		if err != nil {
			panic(name + ": " + err.Error())
		}
		for w := range strings.FieldsSeq(l.Words) {
			l.common[w] = true
		}
		for _, r := range l.Characters {
			l.common[string(r)] = true
		}
		l.asks, l.orders = regexp.MustCompile("(?i)"+l.Asks), regexp.MustCompile("(?i)"+l.Orders)
		for i := range l.Forms {
			f := &l.Forms[i]
			end := ""
			if f.End {
				end = l.End
			}
			f.find = regexp.MustCompile("(?i)" + strings.ReplaceAll(f.Form, "{who}", l.Who) + end)
		}
		all = append(all, l)
	}
	return all
})

// common reports whether a word is in so many sentences that nothing is found by it.
func common(word string) bool {
	for _, l := range lexicons() {
		if l.common[word] {
			return true
		}
	}
	return false
}

// asks reports whether a sentence asks, or tells of what is not so.
func asks(s string) bool {
	for _, l := range lexicons() {
		if l.asks.MatchString(s) {
			return true
		}
	}
	return false
}

// orders reports whether a text tells the assistant what to do: it is no fact, and may be meant to make it break its rules.
func orders(s string) bool {
	for _, l := range lexicons() {
		if l.orders.MatchString(s) {
			return true
		}
	}
	return false
}

// forms yields those of all languages.
var forms iter.Seq[*form] = func(yield func(*form) bool) {
	for _, l := range lexicons() {
		for i := range l.Forms {
			if !yield(&l.Forms[i]) {
				return
			}
		}
	}
}
