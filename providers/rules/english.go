package rules

import (
	"regexp"
	"slices"
	"strconv"
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
		case "<when>", "<what>", "<rest>":
			b.WriteString(`(?P` + piece + `(?:\S+ ){1,24})`)
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
	return strings.Fields(strings.NewReplacer("[", " [ ", "]", " ] ", "(", " ( ", ")", " ) ", "|", " | ").Replace(text))
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

// englishNumbers replaces spoken numbers, 0 to 100 in words and any in digits,
// by <30>, and thirty percent by <30%>. "two" and "four" right before another number are taken for the "to"
// and "for" that recognisers mistake for them.
func englishNumbers(words []string) []string {
	var out []string
	for i := 0; i < len(words); {
		n, used := englishNumber(words[i:])
		if used == 0 || words[i] == "one" && i > 0 && slices.Contains([]string{"next", "this", "that", "another"}, words[i-1]) {
			out = append(out, words[i])
			i++
			continue
		}
		_, next := englishNumber(words[i+used:])
		if meant := map[string]string{"two": "to", "four": "for"}[words[i]]; meant != "" && next > 0 && used == 1 {
			out = append(out, meant)
			i++
			continue
		}
		i += used
		share := ""
		if i < len(words) && words[i] == "percent" {
			share = "%"
			i++
		}
		out = append(out, "<"+strconv.Itoa(n)+share+">")
	}
	return out
}

// englishNumber reads a number from the start of words and says how many words
// it took, 0 for none.
func englishNumber(words []string) (n, used int) {
	if len(words) == 0 {
		return 0, 0
	}
	if n, ok := digits(words[0]); ok {
		return n, 1
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	n, isSmall := smallNumber(words[0])
	unit, isUnit := smallNumber(second)
	isUnit = isUnit && unit > 0 && unit < 10
	switch first := words[0]; {
	case first == "a" && second == "hundred":
		return 100, 2
	case second == "hundred" && isSmall && n > 0 && n < 10:
		return n * 100, 2
	case first == "hundred":
		return 100, 1
	case (first == "a" || first == "an") && (second == "minute" || second == "hour" || second == "second"):
		return 1, 1
	case tens(first) > 0 && isUnit:
		return tens(first) + unit, 2
	case tens(first) > 0:
		return tens(first), 1
	case isSmall:
		return n, 1
	}
	return 0, 0
}

// smallNumber reads a word for 0 to 19.
func smallNumber(word string) (int, bool) {
	n := indexIn("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "+
		"fifteen sixteen seventeen eighteen nineteen", word)
	return n, n >= 0
}

// tens reads a word for 20, 30 … 90, or gives 0.
func tens(word string) int {
	return 10 * max(0, indexIn("- - twenty thirty forty fifty sixty seventy eighty ninety", word))
}

// indexIn returns the place of a word in a list, or -1.
func indexIn(list, word string) int {
	i := 0
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return i
		}
		i++
	}
	return -1
}

// digits reads a number of at most five digits.
func digits(text string) (int, bool) {
	if len(text) == 0 || len(text) > 5 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
