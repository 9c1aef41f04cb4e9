package rules

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// The notation of English patterns, which is also that of Phrases: (a|b) is one
// of them, [a] may be left out, <number> is 0 to 100.

// englishExpr turns a pattern into an expression over words that are each
// followed by one space, with numbers as <30>.
func englishExpr(text string) string {
	var b strings.Builder
	b.WriteString(`^`)
	for _, piece := range patternPieces(text) {
		switch piece {
		case "[", "(":
			b.WriteString("(?:")
		case "]":
			b.WriteString(")?")
		case ")", "|":
			b.WriteString(piece)
		case "<number>":
			b.WriteString(`<(\d+%?)> `)
		case "<words>":
			b.WriteString(`(?:\S+ ){1,20}`)
		default:
			b.WriteString(regexp.QuoteMeta(piece) + " ")
		}
	}
	b.WriteString(`$`)
	return b.String()
}

// patternPieces cuts a pattern into its words and signs.
func patternPieces(text string) []string {
	for _, sign := range []string{"[", "]", "(", ")", "|"} {
		text = strings.ReplaceAll(text, sign, " "+sign+" ")
	}
	return strings.Fields(text)
}

// englishForms returns the ways to read a text: as it is, and without the polite
// words around it.
// name is the assistant's, beside Xiaozhi.
func englishForms(text, name string) []string {
	words := englishWords(text)
	plain := trimPolite(words, englishWords(name))
	if len(plain) == len(words) || len(plain) == 0 {
		return []string{strings.Join(words, " ")}
	}
	return []string{strings.Join(words, " "), strings.Join(plain, " ")}
}

// englishWords lower-cases a text, drops its signs, writes short forms out and
// turns spoken numbers into <30>.
func englishWords(text string) []string {
	text = strings.ToLower(strings.NewReplacer("’", "'", "%", " percent ").Replace(text))
	text = strings.NewReplacer("an hour and a half", "90 minutes", "one and a half hours", "90 minutes", "half an hour", "30 minutes").Replace(text)
	text = englishSigned(text)
	fields := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
	var words []string
	for _, w := range fields {
		w = strings.Trim(w, "'")
		if full, ok := english().Short[w]; ok {
			words = append(words, strings.Fields(full)...)
			continue
		}
		if whole, ok := strings.CutSuffix(w, "'s"); ok && whole != "today" {
			words = append(words, whole, "is")
			continue
		}
		words = append(words, strings.ReplaceAll(w, "'", ""))
	}
	return englishNumbers(words)
}

// englishSigned writes the signs out that are part of a number, so that -10 is
// not read as 10.
func englishSigned(text string) string {
	var b strings.Builder
	for i := range len(text) {
		before := i == 0 || text[i-1] == ' '
		after := i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9'
		switch c := text[i]; {
		case before && after && c == '-':
			b.WriteString(" minus ")
		case after && c == '+':
			b.WriteString(" plus ")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// trimPolite drops what is said around a request, the assistant's name too.
func trimPolite(words, name []string) []string {
	before, after := english().Before, english().After
	if len(name) > 0 {
		joined := strings.Join(name, " ")
		before, after = append(slices.Clip(before), joined), append(slices.Clip(after), joined)
	}
	for changed := true; changed; {
		changed = false
		for _, p := range before {
			if n := len(strings.Fields(p)); len(words) > n && strings.Join(words[:n], " ") == p {
				words, changed = words[n:], true
			}
		}
		for _, p := range after {
			if rest := len(words) - len(strings.Fields(p)); rest > 0 && strings.Join(words[rest:], " ") == p {
				words, changed = words[:rest], true
			}
		}
	}
	return words
}

// englishUnit returns the unit of time that a text names, or 0.
func englishUnit(text string) time.Duration {
	for w := range strings.FieldsSeq(text) {
		switch strings.TrimSuffix(w, "s") {
		case "second":
			return time.Second
		case "minute":
			return time.Minute
		case "hour":
			return time.Hour
		}
	}
	return 0
}
