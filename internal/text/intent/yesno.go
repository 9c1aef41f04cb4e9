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

// YesNo reads an answer to the question whether to do the action. An answer that holds
// a negation is [No], also where the action holds it too: who says "do not" has not
// agreed to anything. It is [Yes] if it holds nothing but words of assent and of the
// action itself, so that a new request that begins with "OK" is not.
func YesNo(words, action string) Answer {
	heard, said := plainWords(words), plainWords(action)
	signs := strings.Map(simplified, text.Bare(words))
	if negates(heard, signs) {
		return No
	}
	refuses, ambiguous := refusal(heard, said, signs, strings.Map(simplified, text.Bare(action)))
	switch {
	case refuses:
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
		case slices.Contains(said, word), oneOf(word, en().Fillers):
		case oneOf(word, en().Assents):
			found = found || !ambiguous || word != "please" // please cancel
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

// Answering reports whether words that are neither a yes nor a no sound like an answer
// all the same, so that it is worth asking again: they begin like a yes, or say too
// little to be a request.
func Answering(words string, lang text.Lang) bool {
	heard := plainWords(words)
	for len(heard) > 1 && oneOf(heard[0], en().Fillers) {
		heard = heard[1:]
	}
	if len(heard) > 0 && oneOf(heard[0], en().Assents) {
		return true
	}
	said := strings.Map(simplified, text.Bare(words))
	for {
		rest, filled := cutAny(said, "嗯 恩 啊 哦 噢 呃 那个 那")
		if !filled {
			break
		}
		said = rest
	}
	if _, assents := cutAny(said, zh().Assents); assents || said == "" {
		return true
	}
	return Classify(words, lang, nil) != Request
}

// negates reports whether an answer holds a negation. Recognisers write don't, dont and
// don t.
func negates(heard []string, signs string) bool {
	for i, word := range heard {
		if oneOf(word, en().Negations) || i > 0 && word == "t" && strings.HasSuffix(heard[i-1], "n") {
			return true
		}
	}
	for words := range strings.FieldsSeq(zh().Affirmed) {
		signs = strings.ReplaceAll(signs, words, "")
	}
	return containsAny(signs, zh().Negations)
}

// refusal reports whether an answer refuses by a word such as cancel. It is ambiguous
// where the action is called by that word.
func refusal(heard, said []string, signs, action string) (refuses, ambiguous bool) {
	if action != "" {
		signs = strings.ReplaceAll(signs, action, "")
	}
	if containsAny(signs, zh().Refusals) {
		return true, false
	}
	for _, word := range heard {
		if oneOf(word, en().Refusals) {
			if !slices.Contains(said, word) {
				return true, false
			}
			ambiguous = true
		}
	}
	return false, ambiguous
}

// plainWords returns the words of a text in lower case, without marks.
func plainWords(words string) []string {
	return strings.Fields(strings.Map(plainLetter, strings.ToLower(words)))
}

// containsAny reports whether s holds one of the words.
func containsAny(s, words string) bool {
	for word := range strings.FieldsSeq(words) {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// cutAny takes one of the words away from the beginning of s.
func cutAny(s, words string) (rest string, found bool) {
	for word := range strings.FieldsSeq(words) {
		if rest, ok := strings.CutPrefix(s, word); ok {
			return rest, true
		}
	}
	return s, false
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
// The action as a whole is none, whatever signs it has.
func assentText(said, action string) (clear, assents bool) {
	if whole := text.Bare(action); whole != "" {
		said = strings.ReplaceAll(said, whole, "")
	}
	for said != "" {
		sign, size := utf8.DecodeRuneInString(said)
		if rest, ok := cutAny(said, zh().Assents); ok {
			said, assents = rest, true
		} else if rest, ok := cutAny(said, zh().Fillers); ok {
			said = rest
		} else if text.IsCJK(sign) && strings.ContainsRune(action, sign) {
			said = said[size:]
		} else {
			return false, assents
		}
	}
	return true, assents
}
