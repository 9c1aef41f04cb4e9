// Package text holds plain helpers for words: the language of a text, and how
// texts are compared, cut and joined. All functions are pure.
package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of returns the language of s that its script tells, Chinese for Han characters and English for
// Latin letters, and "" if it holds no letter. Where more is known of who speaks, [Resolve] knows better.
func Of(s string) Lang { return Resolve(s, "", "") }

// Bare returns the letters and digits of s in lower case, for comparing words.
func Bare(s string) string {
	return strings.Map(func(r rune) rune {
		if IsWord(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// In reports whether s equals one of the words in its [Bare] form. A text
// without letters and digits equals none.
func In(s string, words []string) bool {
	bare := Bare(s)
	return bare != "" && slices.ContainsFunc(words, func(w string) bool { return Bare(w) == bare })
}

// Cut returns at most limit bytes of s, without a broken character at the end,
// and "…" behind them if s is longer.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return head(s, limit) + "…"
}

// Line returns s in one line, without signs that steer a terminal or turn the direction of writing;
// there is one space for each of them, and for all that stand together.
func Line(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)), " ")
}

// Shorten returns s if it has at most limit bytes, else its beginning with a note of how many
// bytes there were, for a reader who must know that something is missing. The note counts
// towards limit; a limit smaller than the note leaves the note alone.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	note := "… [cut: " + strconv.Itoa(len(s)) + " bytes in all]"
	return head(s, limit-len(note)) + note
}

// head returns at most limit bytes of s, without a broken character at the end.
func head(s string, limit int) string {
	end := min(max(limit, 0), len(s))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// List returns items as words: a, b and c.
func List(items []string, lang Lang) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	switch {
	case lang.IsChinese():
		return strings.Join(items[:last], "、") + "和" + items[last]
	case lang == "", lang.IsEnglish():
		return strings.Join(items[:last], ", ") + " and " + items[last]
	}
	return strings.Join(items, ", ")
}

// Join returns a and b as one text, with a space between them unless one is empty, a ends with a
// space, or one of the two characters that meet is written without spaces, as Korean is not.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	korean := unicode.Is(unicode.Hangul, first) && (unicode.Is(unicode.Hangul, last) || strings.ContainsRune(".?!,", last))
	if unicode.IsSpace(last) || !korean && (IsCJK(first) || IsCJK(last) || last > 0x3000) {
		return a + b
	}
	return a + " " + b
}

// Sentence begins words with a capital, unless they begin with a name: of a service, before a colon, or of a file or a setting.
func Sentence(words string) string {
	end := strings.IndexFunc(words, func(r rune) bool { return r < 'a' || r > 'z' })
	if end <= 0 || !strings.HasPrefix(words[end:], " ") && words[end] != ',' && words[end] != '\'' {
		return words
	}
	if second, _ := utf8.DecodeRuneInString(words[end+1:]); IsCJK(second) { // it is Chinese, and begins with a name
		return words
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// Half returns of a text in Chinese and another language what is in one of them: its lines, or in a line what is before or
// after the end of the Chinese sentences; all of it if the language has nothing of its own.
func Half(both string, l Lang) string {
	var own []string
	if i := strings.LastIndex(both, "。 "); i > 0 && !strings.ContainsFunc(both[i+len("。 "):], IsCJK) {
		both = both[:i+len("。")] + "\n" + both[i+len("。 "):]
	}
	for line := range strings.Lines(both) {
		if line = strings.TrimSpace(line); line != "" && strings.ContainsFunc(line, IsCJK) == l.IsChinese() {
			own = append(own, line)
		}
	}
	if len(own) == 0 {
		return both
	}
	return strings.Join(own, "\n")
}

// IsWord reports whether r is a letter or a digit.
func IsWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// IsCJK reports whether r is a character of a script written without spaces:
// Han, Hiragana, Katakana or Hangul.
func IsCJK(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}
