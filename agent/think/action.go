package think

import (
	"slices"
	"strings"

	"xiaozhi/internal/text"
)

// ActionWords returns what a tool does, in words that can be said: "turn on the
// lamp" for self.lamp.turn_on, the beginning of a Chinese description in Chinese.
func ActionWords(name, description string, lang text.Lang) string {
	name, description = noQuestion(name), noQuestion(description)
	if lang.IsChinese() {
		if clause := shortClause(description); clause != "" {
			return clause
		}
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '/' || r == ':' })
	if len(parts) == 0 {
		return name
	}
	words := strings.FieldsFunc(strings.ToLower(parts[len(parts)-1]), func(r rune) bool { return r == '_' || r == '-' || r == ' ' })
	verb := 1
	for verb < len(words) && slices.Contains([]string{"on", "off", "up", "down", "in", "out"}, words[verb]) {
		verb++
	}
	object := words[min(verb, len(words)):]
	if len(object) == 0 && len(parts) > 1 && parts[len(parts)-2] != "self" {
		object = strings.FieldsFunc(parts[len(parts)-2], func(r rune) bool { return r == '_' || r == '-' })
	}
	out := strings.Join(words[:min(verb, len(words))], " ")
	if len(object) > 0 && !lang.IsChinese() {
		out += " the"
	}
	return strings.TrimSpace(out + " " + strings.Join(object, " "))
}

// noQuestion takes the marks of questions out of a text: the question about the action ends at its own, and who has
// heard it so far may answer.
func noQuestion(s string) string {
	return strings.TrimSpace(strings.NewReplacer("?", " ", "？", " ", "؟", " ").Replace(s))
}

// maxClause is how many characters of a description are said.
const maxClause = 14

// shortClause is the beginning of a Chinese description, if it is short enough
// to be said.
func shortClause(description string) string {
	clause, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	if i := strings.IndexAny(clause, "。，；！：（(,.;"); i >= 0 {
		clause = clause[:i]
	}
	clause = strings.TrimSpace(clause)
	if n := len([]rune(clause)); n == 0 || n > maxClause || text.Of(clause) != text.Chinese {
		return ""
	}
	return clause
}

// maxReason is how many characters of a reason are said.
const maxReason = 120

// ReasonWords returns a tool's own words for its failure, as far as they can be
// said: one line, without the full stop that the phrase has itself.
func ReasonWords(reason string) string {
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	if r := []rune(reason); len(r) > maxReason {
		reason = string(r[:maxReason])
	}
	return strings.TrimRight(reason, ".。!！ ")
}
