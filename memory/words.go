package memory

import (
	"strings"
	"unicode"
)

// terms returns what a text is found by: English words without their endings, pairs of neighbouring Chinese characters, and
// single ones, which count less since they are part of many words.
func terms(s string) map[string]float64 {
	found := map[string]float64{}
	add := func(term string, weight float64) { found[term] = max(found[term], weight) }
	var word strings.Builder
	var before rune // the Chinese character just before; 0: none
	end := func() {
		if w := word.String(); w != "" && !common(w) {
			add(stem(w), 1)
		}
		word.Reset()
	}
	for _, r := range strings.ToLower(s) {
		switch {
		case unicode.Is(unicode.Han, r):
			end()
			if !commonHan(r) {
				add(string(r), singleWeight)
			}
			if before != 0 {
				if pair := string(before) + string(r); !common(pair) {
					add(pair, 1)
				}
			}
			before = r
			continue
		case unicode.IsLetter(r), unicode.IsNumber(r):
			word.WriteRune(r)
		case r == '\'' || r == '’':
			end()
		default:
			end()
		}
		before = 0
	}
	end()
	return found
}

// singleWeight is what one Chinese character counts beside a pair.
const singleWeight = 0.35

// stem takes the endings off an English word that make other forms of it.
func stem(w string) string {
	for _, ending := range []string{"ing", "ies", "ed", "es", "s"} {
		if rest, ok := strings.CutSuffix(w, ending); ok && len(rest) >= 3 {
			if ending == "ies" {
				return rest + "y"
			}
			if n := len(rest); n > 3 && rest[n-1] == rest[n-2] && (ending == "ing" || ending == "ed") {
				rest = rest[:n-1]
			}
			return strings.TrimSuffix(rest, "e")
		}
	}
	return strings.TrimSuffix(w, "e")
}
