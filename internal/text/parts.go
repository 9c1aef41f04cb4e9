package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// joiner makes one sign of the characters on both sides of it.
const joiner = '\u200d'

// How good a place is for a cut, the best last.
const (
	cutAnywhere = iota
	cutBlank
	cutClause
	cutSentence
	cutRanks
)

// Parts cuts words into parts of at most so much, by the sum of the sizes of their characters, or
// their number if size is nil; 0 is no limit. It cuts behind a sentence if it can, else behind a
// clause, else at a blank, and never within a sign of several characters. Parts without a letter
// or a digit are left out.
func Parts(words string, most int, size func(rune) int) []string {
	if size == nil {
		size = func(rune) int { return 1 }
	}
	var out []string
	for words != "" {
		n := len(words)
		if most > 0 {
			n = cut(words, most, size)
		}
		part := words[:n]
		if words = words[n:]; words != "" || out != nil {
			part = strings.TrimSpace(part)
		}
		if strings.ContainsFunc(part, IsWord) {
			out = append(out, part)
		}
	}
	return out
}

// cut returns the length of the first part in bytes, at least one character.
func cut(words string, most int, size func(rune) int) int {
	var latest [cutRanks]int // in bytes
	sum, fits := 0, 0
	for i, r := range words {
		if sum += size(r); sum > most && i > 0 {
			for rank := cutSentence; rank > cutAnywhere; rank-- {
				if latest[rank] > fits/2 { // else the parts would be small ones
					return latest[rank]
				}
			}
			if latest[cutAnywhere] > 0 {
				return latest[cutAnywhere]
			}
			return fits
		}
		_, width := utf8.DecodeRuneInString(words[i:])
		fits = i + width
		next, _ := utf8.DecodeRuneInString(words[fits:])
		if rank := rankOf(r, next); rank > cutAnywhere {
			latest[rank] = fits
		}
		if r != joiner && next != joiner && !unicode.Is(unicode.M, next) {
			latest[cutAnywhere] = fits
		}
	}
	return len(words)
}

// rankOf says how good a cut is between two characters.
func rankOf(r, next rune) int {
	switch {
	case r == '\n' || strings.ContainsRune("。！？；…", r):
		return cutSentence
	case strings.ContainsRune("，、：", r):
		return cutClause
	case strings.ContainsRune(".!?;", r) && !IsWord(next):
		return cutSentence
	case strings.ContainsRune(",:", r) && !IsWord(next):
		return cutClause
	case unicode.IsSpace(r):
		return cutBlank
	}
	return cutAnywhere
}
