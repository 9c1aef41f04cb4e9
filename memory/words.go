package memory

import (
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text/search"
)

// terms returns what a text is found by, with how much each counts.
func terms(s string) map[string]float64 {
	found := map[string]float64{}
	search.Each(s, findsNothing, func(term string, weight float64) { found[term] = max(found[term], weight) })
	return found
}

// findsNothing reports whether a term is common, or a pair of Chinese characters which both are.
func findsNothing(term string) bool {
	if common(term) {
		return true
	}
	first, n := utf8.DecodeRuneInString(term)
	return unicode.Is(unicode.Han, first) && utf8.RuneCountInString(term) == 2 && common(term[:n]) && common(term[n:])
}

// Names reports whether words name anything by which something can be found: "what do you know about me" does not.
func Names(words string) bool { return len(terms(words)) > 0 }
