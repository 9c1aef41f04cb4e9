package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"xiaozhi/internal/text/spoken"
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
			if slot, ok := englishSlots[piece]; ok {
				b.WriteString(slot)
				continue
			}
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
// words around it, taken off one after the other. name is the assistant's, beside Xiaozhi.
func (k *phrasebook) englishForms(text, name string) []string {
	words := k.englishWords(text)
	forms := []string{strings.Join(words, " ")}
	for _, form := range k.trimPolite(words, k.englishWords(name)) {
		forms = append(forms, strings.Join(form, " "))
	}
	return k.with(func(base *phrasebook) []string { return base.englishForms(text, name) }, forms)
}

// englishWords lower-cases a text, drops its signs, writes short forms out and
// turns spoken numbers into <30>.
func (k *phrasebook) englishWords(text string) []string {
	text = strings.ToLower(strings.NewReplacer("’", "'", "%", " percent ").Replace(text))
	text = strings.NewReplacer("an hour and a half", "90 minutes", "three quarters of an hour", "45 minutes", "a quarter of an hour", "15 minutes", "one and a half hours", "90 minutes", "half an hour", "30 minutes", "a daily alarm for ", "an alarm every day at ", "a weekday alarm for ", "an alarm every weekday at ", "remind us ", "remind me ", "wake us ", "wake me ").Replace(text)
	text = englishSigned(withoutOperators(text, " plus ", " minus ", " times ", " divided by "))
	fields := strings.FieldsFunc(withoutGroups(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != decimalPoint
	})
	var words []string
	for i, w := range fields {
		w = strings.Trim(w, "'")
		if full, ok := k.Short[w]; ok {
			words = append(words, strings.Fields(full)...)
			continue
		}
		if whole, ok := strings.CutSuffix(w, "'s"); ok && whole != "today" {
			if i+1 < len(fields) && slices.Contains([]string{"date", "alarm", "alarms", "reminder", "reminders"}, fields[i+1]) {
				words = append(words, whole) // tomorrow's alarm
				continue
			}
			if i+1 < len(fields) && (fields[i+1] == "day" || fields[i+1] == "eve") {
				words = append(words, whole+"s") // mother's day
				continue
			}
			words = append(words, whole, "is")
			continue
		}
		words = append(words, strings.ReplaceAll(w, "'", ""))
	}
	return englishNumbers(words)
}

// decimalPoint stands for the point of a number while a text is cut into words.
const decimalPoint = '․'

var (
	pointed = regexp.MustCompile(`(\d)\.(\d)`)
	grouped = regexp.MustCompile(`(\d),(\d{3})\b`)
)

// withoutGroups writes 1,200 as 1200, and keeps the point of 3.5.
func withoutGroups(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	return pointed.ReplaceAllString(grouped.ReplaceAllString(text, "$1$2"), "${1}"+string(decimalPoint)+"${2}")
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

// trimPolite drops what is said around a request, the assistant's name too, and gives what is
// left after each cut.
func (k *phrasebook) trimPolite(words, name []string) (forms [][]string) {
	before, after := k.Before, k.After
	if len(name) > 0 {
		joined := strings.Join(name, " ")
		before, after = append(slices.Clip(before), joined), append(slices.Clip(after), joined)
	}
	for changed := true; changed; {
		changed = false
		for _, p := range after {
			if rest := len(words) - len(strings.Fields(p)); rest > 0 && strings.Join(words[rest:], " ") == p {
				words, changed = words[:rest], true
				forms = append(forms, words)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range before {
			if n := len(strings.Fields(p)); len(words) > n && strings.Join(words[:n], " ") == p {
				words, changed = words[n:], true
				forms = append(forms, words)
			}
		}
	}
	return forms
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

// englishNumbers replaces numbers, in words or digits, by <30>, <3.5>, and thirty percent by <30%>. "two" and "four" right before another number are taken for the "to"
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
		out = append(out, "<"+n+share+">")
	}
	return out
}

// englishNumber reads a number from the start of words and says how many words
// it took, 0 for none.
func englishNumber(words []string) (number string, used int) {
	if len(words) == 0 {
		return "", 0
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	first := strings.ReplaceAll(words[0], string(decimalPoint), ".")
	switch {
	case strings.Trim(first, "0123456789") == "", pointed.MatchString(first) && strings.Trim(first, "0123456789.") == "":
		return first, 1
	case first == "hundred":
		return "100", 1
	case (first == "a" || first == "an") && (second == "minute" || second == "hour" || second == "second"):
		return "1", 1
	case first == "oh":
		return "", 0
	}
	words = slices.Clone(words[:min(len(words), 12)])
	if first == "a" && (second == "hundred" || second == "thousand") { // and twenty
		words[0] = "one"
	} else if _, isNumber := spoken.Number(first); !isNumber {
		return "", 0
	}
	joined := strings.Join(words, " ")
	decimal, rest, ok := spoken.LeadingDecimal(joined)
	if !ok || rest != "" && rest[0] != ' ' {
		return "", 0
	}
	return decimal, len(strings.Fields(joined)) - len(strings.Fields(rest))
}

// digits reads a number of at most five digits.
func digits(text string) (int, bool) {
	if len(text) == 0 || len(text) > 5 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
