package spoken

import (
	"strings"
	"unicode/utf8"
)

// cursor reads a text from left to right. The text is in lower case.
type cursor struct{ rest string }

// fold is the text as a cursor reads it: lower case, ASCII signs for wide ones.
func fold(text string) string {
	text = strings.NewReplacer("：", ":", "，", ",", "。", "", "　", " ", "．", ".", "’", "'").Replace(strings.ToLower(text))
	return strings.TrimSpace(text)
}

// take goes over the first of the words that comes next. An English word must
// end there.
func (c *cursor) take(words ...string) bool {
	for _, w := range words {
		rest, ok := strings.CutPrefix(c.rest, w)
		if !ok || (isLetter(w[len(w)-1]) && rest != "" && isLetter(rest[0])) {
			continue
		}
		c.rest = rest
		return true
	}
	return false
}

func isLetter(b byte) bool { return b >= 'a' && b <= 'z' }

// skip goes over words that mean nothing here.
func (c *cursor) skip(words ...string) {
	for c.take(words...) {
	}
}

// number reads a whole number in digits, Chinese or English words.
func (c *cursor) number() (int, bool) {
	n, rest, ok := leadingNumber(c.rest)
	if !ok {
		n, rest, ok = leadingWords(c.rest)
	}
	if ok {
		c.rest = rest
	}
	return n, ok
}

// leadingWords reads the longest number in English words that text begins with:
// one hundred and twenty.
func leadingWords(text string) (n int, rest string, ok bool) {
	rest = text
	after := text
	for range 8 {
		word, next := firstWord(after)
		if word == "" {
			break
		}
		if v, fits := englishNumber(text[:len(text)-len(next)]); fits {
			n, rest, ok = v, next, true
		}
		after = strings.TrimLeft(next, " -")
	}
	return n, rest, ok
}

// decimal reads a number that may have a fraction.
func (c *cursor) decimal() (float64, bool) {
	n, ok := c.number()
	if !ok {
		return 0, false
	}
	value := float64(n)
	fraction, ok := strings.CutPrefix(c.rest, ".")
	for scale := 0.1; ok && scale > 1e-9; scale /= 10 {
		r, size := utf8.DecodeRuneInString(fraction)
		d, isDigit := digit(r)
		if !isDigit {
			break
		}
		value, fraction = value+float64(d)*scale, fraction[size:]
		c.rest = fraction
	}
	return value, true
}
