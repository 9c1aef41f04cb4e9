package memory

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// statement is what somebody says of themselves or of the household, in words that say it of a third person.
type statement struct {
	slot string // see [Fact]
	text string
	keys string
}

// form finds statements of one form. Text and Slot have ${1} and so on for what the form leaves open.
type form struct {
	Form string
	Slot string
	Text string
	Keys string
	End  bool

	find *regexp.Regexp
}

// sureByRules is how sure a statement is that no model has read: people joke.
const sureByRules = 80

var sentences = regexp.MustCompile(`[^.!?。！？\n]+[.!?。！？]*`)

// statements finds what a text tells of the one who speaks, without a model.
func statements(words string) (found []statement) {
	for _, s := range sentences.FindAllString(words, -1) {
		s = strings.TrimSpace(s)
		if asks(s) {
			continue
		}
		for f := range forms {
			for _, at := range f.find.FindAllStringSubmatchIndex(s, -1) {
				fill := func(template string) string { return string(f.find.ExpandString(nil, template, s, at)) }
				one := statement{strings.ToLower(fill(f.Slot)), oneLine(fill(f.Text), MaxText), f.Keys}
				if !slices.ContainsFunc(found, func(o statement) bool { return o.text == one.text }) {
					found = append(found, one)
				}
			}
		}
	}
	return found
}

const (
	toldWords  = 40 // characters of what was asked in a summary made by rules
	toldTopics = 6  // of a talk
)

// plainSummary adds a line about a talk to a summary, without a model. The oldest lines make room.
func plainSummary(before string, said []Said, lang text.Lang, zone *time.Location) string {
	var topics []string
	for _, t := range said {
		if t.Forgets || forgotten(t.Heard, t.Seq, said) {
			continue
		}
		words := strings.TrimFunc(oneLine(t.Heard, 4*toldWords), func(r rune) bool { return !text.IsWord(r) })
		if r := []rune(words); len(r) > toldWords {
			words = string(r[:toldWords]) + "…"
		}
		if utf8.RuneCountInString(words) > 1 && !slices.Contains(topics, words) {
			topics = append(topics, words)
		}
	}
	if len(topics) == 0 {
		return before
	}
	if len(topics) > toldTopics {
		topics = topics[len(topics)-toldTopics:]
	}
	at := said[0].At.In(zone)
	line := message.In(lang, "memory/talk", at.Year(), int(at.Month()), at.Day(), strings.Join(topics, message.In(lang, "memory/and")))
	lines := append(strings.Split(strings.TrimSpace(before), "\n"), line)
	for len(lines) > 1 && len(strings.Join(lines, "\n")) > MaxSummary {
		lines = lines[1:]
	}
	return strings.TrimSpace(text.Cut(strings.Join(lines, "\n"), MaxSummary))
}
