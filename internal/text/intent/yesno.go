package intent

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// Answer says what an answer to a question means.
type Answer int

// The answers.
const (
	Unclear Answer = iota // neither, or a new request
	Yes                   // the user agrees
	No                    // the user refuses
)

// YesNo reads an answer to the question whether to do the action. An answer
// that holds a no is [No]. It is [Yes] if it holds nothing but words of assent
// and of the action itself, so that a new request that begins with "OK" is not.
func YesNo(words, action string) Answer {
	said := strings.Fields(strings.Map(plainLetter, strings.ToLower(action)))
	heard := strings.Fields(strings.Map(plainLetter, strings.ToLower(words)))
	signs := strings.ReplaceAll(text.Bare(words), text.Bare(action), "")
	switch {
	case slices.ContainsFunc(strings.Fields(zh().Refusals), func(word string) bool { return strings.Contains(signs, word) }),
		slices.ContainsFunc(heard, func(word string) bool { return oneOf(word, en().Refusals) && !slices.Contains(said, word) }):
		return No
	case strings.ContainsAny(words, "?？吗嗎"):
		return Unclear
	}
	spaced := " " + strings.Join(heard, " ") + " "
	for phrase := range strings.FieldsSeq(en().Phrases) {
		spaced = strings.ReplaceAll(spaced, " "+strings.ReplaceAll(phrase, "_", " ")+" ", " yes ")
	}
	found := false
	for word := range strings.FieldsSeq(spaced) {
		switch {
		case oneOf(word, en().Assents):
			found = true
		case oneOf(word, en().Fillers), slices.Contains(said, word):
		default:
			clear, assents := assentText(word, action)
			if !clear {
				return Unclear
			}
			found = found || assents
		}
	}
	if found {
		return Yes
	}
	return Unclear
}

// plainLetter maps what is neither letter nor digit to a space, apostrophes to nothing.
func plainLetter(r rune) rune {
	switch {
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		return r
	case r == '\'' || r == '’':
		return -1
	}
	return ' '
}

// assentText reports whether a text is nothing but Chinese words of assent, what
// may stand beside them, and signs of the action, and whether assent is among them.
func assentText(said, action string) (clear, assents bool) {
	cut := func(words string) bool {
		for word := range strings.FieldsSeq(words) {
			if rest, ok := strings.CutPrefix(said, word); ok {
				said = rest
				return true
			}
		}
		return false
	}
	for said != "" {
		sign, size := utf8.DecodeRuneInString(said)
		switch {
		case cut(zh().Assents):
			assents = true
		case cut(zh().Fillers):
		case text.IsCJK(sign) && strings.ContainsRune(action, sign):
			said = said[size:]
		default:
			return false, assents
		}
	}
	return true, assents
}
