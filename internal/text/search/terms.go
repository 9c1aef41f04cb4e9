// Package search finds texts by their words, in languages with and without spaces.
package search

import (
	_ "embed"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// singleWeight is the weight of one Chinese character; that of a word or of a pair of characters is 1, since a character is
// part of many words.
const singleWeight = 0.35

// Each gives the terms by which a text is found: words without the endings of English, pairs of neighbouring Chinese
// characters or Japanese kana, and single Chinese characters. A term may come more than once. Terms for which skip
// reports true are left out; nil: none is.
func Each(s string, skip func(term string) bool, add func(term string, weight float64)) {
	s = strings.ToLower(norm.NFKC.String(s)) // digits and letters of full width are those of half width
	give := func(term string, weight float64) {
		if skip == nil || !skip(term) {
			add(term, weight)
		}
	}
	word, before := -1, -1 // where a word, or the character just before, begins; -1: there is none
	end := func(at int) {
		if word >= 0 {
			if w := s[word:at]; skip == nil || !skip(w) {
				add(Stem(w), 1)
			}
		}
		word = -1
	}
	for at, r := range s {
		switch {
		case dense(r):
			end(at)
			if unicode.Is(unicode.Han, r) {
				give(s[at:at+utf8.RuneLen(r)], singleWeight)
			}
			if before >= 0 {
				give(s[before:at+utf8.RuneLen(r)], 1)
			}
			before = at
			continue
		case unicode.IsLetter(r), unicode.IsNumber(r):
			if word < 0 {
				word = at
			}
		default:
			end(at)
		}
		before = -1
	}
	end(len(s))
}

// dense reports whether a sign is of a script that writes words without spaces between them.
func dense(r rune) bool {
	return r >= 0x2E80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || r == 'ー')
}

// Stem takes the endings off an English word that make other forms of it.
func Stem(w string) string {
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

//go:embed asking.txt
var asking string

// Asking returns a function that reports whether a term only asks, as what and where do, and looks for nothing: a text need
// not have it to be an answer.
func Asking() func(term string) bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(asking) {
		words[w] = true
	}
	return func(term string) bool { return words[term] }
}

// Saturation is the parameter k1 of BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009): how little
// more a term counts that a text has often.
const Saturation = 1.2

// Rarity returns how much a term tells that in of all texts have.
func Rarity(in, all int) float64 {
	return math.Log(1 + (float64(all-in)+0.5)/(float64(in)+0.5))
}

// Weight returns what a term adds to the score of a text by BM25: its rarity, how much it counts in the query and in the
// text, and how long that is, as part of the mean length. lengthPart, the parameter b, says how much length counts.
func Weight(rarity, asked, there, length, lengthPart float64) float64 {
	return rarity * asked * there * (Saturation + 1) / (there + Saturation*(1-lengthPart+lengthPart*length))
}
