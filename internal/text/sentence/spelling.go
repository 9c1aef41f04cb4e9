package sentence

import (
	"slices"
	"strings"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// spelling knows how a language marks quotes and shortened words.
type spelling struct {
	lang  text.Lang
	words *prompts.Words // nil: none are known
}

// closers are the marks that end what each of these begins, where the language says nothing else.
var closers = map[rune]rune{
	'“': '”', '‘': '’', '「': '」', '『': '』', '（': '）', '(': ')', '【': '】', '《': '》', '[': ']', '"': '"',
	'„': '“', '‚': '‘', '«': '»', '‹': '›',
}

// closer returns the mark that ends what r begins; false: it begins nothing.
func (p spelling) closer(r rune) (closer rune, ok bool) {
	if p.lang.Base() == "de" {
		switch r { // the arrows point inward
		case '»':
			return '«', true
		case '›':
			return '‹', true
		case '«', '‹':
			return 0, false
		}
	}
	closer, ok = closers[r]
	return closer, ok
}

var abbreviations = map[string]bool{
	"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true, "vs": true, "etc": true,
	"e.g": true, "i.e": true, "eg": true, "ie": true, "no": true, "approx": true, "a.m": true, "p.m": true,
	"u.s": true, "u.k": true, "jr": true, "sr": true, "inc": true, "ltd": true, "fig": true, "dept": true,
}

// anyNumber stands among the abbreviations of a language in which a dot makes "third" of 3.
const anyNumber = "0."

// longestPart is the longest part of what is taken for shortened since it has dots within: z.B., т.д., EE.UU.
const longestPart = 2

// shortened reports whether a word in lower case, without the dot behind it, is a shortened one.
func (p spelling) shortened(word string) bool {
	if p.lang.IsOwn() {
		return abbreviations[word]
	}
	if p.words != nil && word != "" {
		if slices.Contains(p.words.Abbreviations, word+".") {
			return true
		}
		if len(word) <= 2 && strings.Trim(word, "0123456789") == "" {
			return slices.Contains(p.words.Abbreviations, anyNumber)
		}
	}
	parts := strings.Split(word, ".")
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part string) bool {
		n := utf8.RuneCountInString(part)
		return n == 0 || n > longestPart || strings.Trim(part, "0123456789") == ""
	})
}
