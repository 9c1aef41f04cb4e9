package memory

import (
	"regexp"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

var (
	ofUser = regexp.MustCompile(`(?i)\bthe user['’]s\b`)
	user   = regexp.MustCompile(`(?i)\bthe user( [a-z]+)?\b`)
)

// Spoken returns a fact as it is told to whom it is about, as part of a sentence: "you live in Ulm".
func (f *Fact) Spoken() string {
	words := strings.TrimFunc(f.Text, func(r rune) bool { return !text.IsWord(r) && r != ')' && r != '"' })
	for _, name := range message.List(text.Chinese, "memory/user") {
		words = strings.ReplaceAll(words, name, message.In(text.Chinese, "memory/you"))
	}
	words = ofUser.ReplaceAllString(words, "your")
	return user.ReplaceAllStringFunc(words, func(s string) string {
		_, verb, more := strings.Cut(s[len("the "):], " ")
		if !more {
			return "you"
		}
		return "you " + secondPerson(verb)
	})
}

// secondPerson makes "live" of "lives".
func secondPerson(verb string) string {
	for _, v := range [][2]string{{"is", "are"}, {"was", "were"}, {"has", "have"}, {"does", "do"}, {"goes", "go"}} {
		if verb == v[0] {
			return v[1]
		}
	}
	switch {
	case strings.HasSuffix(verb, "ies"):
		return strings.TrimSuffix(verb, "ies") + "y"
	case strings.HasSuffix(verb, "sses"), strings.HasSuffix(verb, "ches"), strings.HasSuffix(verb, "shes"), strings.HasSuffix(verb, "xes"):
		return strings.TrimSuffix(verb, "es")
	case strings.HasSuffix(verb, "ss"), !strings.HasSuffix(verb, "s"), verb == "always":
		return verb
	}
	return strings.TrimSuffix(verb, "s")
}
