// Package intent judges what a user means by the words that a recogniser heard:
// whether more will follow, whether words said over a reply interrupt it,
// whether they are the reply's own echo, and whether an answer is a yes. It
// knows Chinese and English. All functions are pure and may be called at the
// same time.
package intent

import (
	"strings"
	"unicode"

	"xiaozhi/internal/text"
)

// Completeness says whether what was said so far sounds complete.
type Completeness int

// The degrees of completeness.
const (
	Undecided  Completeness = iota // nothing in the words tells
	Finished                       // a whole command, question or answer
	Unfinished                     // more must follow
)

// String returns "yes", "no" or "maybe".
func (f Completeness) String() string {
	switch f {
	case Finished:
		return "yes"
	case Unfinished:
		return "no"
	case Undecided:
	}
	return "maybe"
}

// Complete judges by the last words of a transcript whether the user has said
// all of it. Most recognisers give no punctuation, so the words decide; a mark
// at the end counts where there is one. The language is that of the transcript,
// or "" if it is not known.
//
// A wrong [Unfinished] costs the user another commit delay, a wrong [Finished]
// only the pause that was learned. So Unfinished is for endings that hardly
// ever end a sentence ("and", "because", 如果, 帮我), and such endings are
// [Undecided] in the places where they do end one ("what is it for", 我就是,
// 暖和). Nouns, names and figures are Undecided: after 打开客厅 or "twenty"
// anything may follow.
func Complete(words string, lang text.Lang) Completeness {
	words = strings.TrimSpace(words)
	said := strings.TrimRightFunc(words, func(r rune) bool { return !text.IsWord(r) })
	marks := words[len(said):]
	if said == "" {
		return Undecided
	}
	f := completeWords(said, lang)
	switch {
	case strings.Contains(marks, "…"), strings.Contains(marks, ".."), strings.Contains(marks, "。。"):
		return Unfinished
	case strings.ContainsAny(marks, "?？!！"):
		return Finished
	case strings.ContainsAny(marks, "。.．"):
		// Recognisers that punctuate close whatever they were given with a full
		// stop, so after an unfinished ending it only raises a doubt.
		if f == Unfinished {
			return Undecided
		}
		return Finished
	case strings.ContainsAny(marks, ",，、:：;；—–-"):
		return Unfinished
	}
	return f
}

// completeWords judges a text that ends with a letter or a figure.
func completeWords(said string, lang text.Lang) Completeness {
	signs := []rune(said)
	last := signs[len(signs)-1]
	switch {
	case unicode.IsDigit(last):
		return Undecided // a telephone number may go on, and so may 26
	case text.IsCJK(last):
		return completeChinese(text.Bare(strings.Map(simplified, said)))
	case lang == text.Chinese && text.Of(said) == text.Chinese:
		return Undecided // a name within Chinese words: 打开 wifi
	}
	return completeEnglish(strings.Fields(strings.Map(plainLetter, strings.ToLower(said))))
}

// simplified maps a traditional sign of the words that are looked for to the
// simplified one, and any other sign to itself.
func simplified(r rune) rune {
	if to, ok := signs()[r]; ok {
		return to
	}
	return r
}

// oneOf reports whether s is one of the words, which are separated by spaces.
func oneOf(s, words string) bool {
	if s == "" {
		return false
	}
	for word := range strings.FieldsSeq(words) {
		if s == word {
			return true
		}
	}
	return false
}

// endsWith reports whether s ends with one of the words, and returns the part of s
// before the longest of them.
func endsWith(s, words string) (before string, ok bool) {
	return cutLongest(s, words, strings.CutSuffix)
}

// beginsWith reports whether s begins with one of the words, and returns the part
// of s after the longest of them.
func beginsWith(s, words string) (after string, ok bool) {
	return cutLongest(s, words, strings.CutPrefix)
}

func cutLongest(s, words string, cut func(s, word string) (string, bool)) (rest string, ok bool) {
	rest = s
	for word := range strings.FieldsSeq(words) {
		if r, is := cut(s, word); is && len(r) < len(rest) {
			rest, ok = r, true
		}
	}
	return rest, ok
}
