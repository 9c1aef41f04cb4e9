// Package spoken reads numbers, lengths of time and times of day as people say and models write
// them, and says them (Say…), in Chinese and English. In other languages it says plain figures, signs
// of units and 24 hours. It is pure: the present time is given to it.
package spoken

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNumber bounds what is read: larger numbers are not spoken.
const maxNumber = 1_000_000_000

// Number reads a whole number that stands alone: 25, 二十五, 25 in full-width digits, twenty five.
func Number(text string) (int, bool) {
	text = strings.TrimSpace(text)
	n, rest, ok := leadingNumber(text)
	if !ok || strings.TrimSpace(rest) != "" {
		return englishNumber(text)
	}
	return n, true
}

// FirstNumber reads the first number in a text.
func FirstNumber(text string) (int, bool) {
	for i := range text {
		if n, _, ok := leadingNumber(text[i:]); ok {
			return n, true
		}
	}
	return 0, false
}

// leadingNumber reads the number that text begins with, in digits or in Chinese.
func leadingNumber(text string) (n int, rest string, ok bool) {
	digits := 0
	for digits < len(text) {
		r, size := utf8.DecodeRuneInString(text[digits:])
		d, isDigit := digit(r)
		if !isDigit {
			break
		}
		if n = n*10 + d; n > maxNumber {
			return 0, text, false
		}
		digits += size
	}
	if digits > 0 {
		return n, text[digits:], true
	}
	return chineseNumber(text)
}

// digit is the value of a digit of either width.
func digit(r rune) (int, bool) {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0'), true
	case r >= '０' && r <= '９':
		return int(r - '０'), true
	}
	return 0, false
}

// chineseDigit is the value of a Chinese digit, formal ones too.
func chineseDigit(r rune) (int, bool) {
	for i, forms := range [...]string{"零〇", "一壹", "二贰两", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖"} {
		if strings.ContainsRune(forms, r) {
			return i, true
		}
	}
	return 0, false
}

// chineseUnit is the value of a unit, formal ones too.
func chineseUnit(r rune) (int, bool) {
	values := [...]int{10, 100, 1000, 10_000, 100_000_000}
	for i, forms := range [...]string{"十拾", "百佰", "千仟", "万", "亿"} {
		if strings.ContainsRune(forms, r) {
			return values[i], true
		}
	}
	return 0, false
}

// chineseNumber reads 二十五, 一百零三, 两万, 十五, and digits one by one (二零二六).
func chineseNumber(text string) (n int, rest string, ok bool) {
	if n, rest, ok := chineseDigits(text); ok {
		return n, rest, true
	}
	total, section, lastUnit := 0, 0, 0
	i := 0
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		d, isDigit := chineseDigit(r)
		unitRune, unitSize := utf8.DecodeRuneInString(text[min(i+size, len(text)):])
		switch {
		case isDigit && d == 0: // 一百零三
			i, lastUnit, ok = i+size, 0, true
			continue
		case !isDigit: // 十五, and the 万 of 十二万
			d, unitRune, size, unitSize = 1, r, 0, size
		}
		unit, isUnit := chineseUnit(unitRune)
		switch {
		case isUnit && unit >= 10_000 && !isDigit && section == 0, isUnit && !isDigit && unit > 10 && unit < 10_000, !isUnit && !isDigit:
			return total + section, text[i:], ok // no number, or no more of it
		case !isUnit: // the last digit; 一百二 is 120
			return total + section + d*max(1, lastUnit/10), text[i+size:], true
		case unit >= 10_000:
			if isDigit {
				section += d
			}
			total, section = total+section*unit, 0
		default:
			section += d * unit
		}
		if i, lastUnit, ok = i+size+unitSize, unit, true; total+section > maxNumber {
			return 0, text, false
		}
	}
	return total + section, text[i:], ok
}

// chineseDigits reads two or more digits that are said one by one.
func chineseDigits(text string) (n int, rest string, ok bool) {
	i, count := 0, 0
	for i < len(text) && count < 9 {
		r, size := utf8.DecodeRuneInString(text[i:])
		d, isDigit := chineseDigit(r)
		if !isDigit {
			break
		}
		n, i, count = n*10+d, i+size, count+1
	}
	next, _ := utf8.DecodeRuneInString(text[i:])
	if _, more := chineseUnit(next); more || count < 2 {
		return 0, text, false
	}
	return n, text[i:], true
}

// englishNumber reads numbers in words up to the thousands.
func englishNumber(text string) (int, bool) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '-' })
	if len(words) == 0 || len(words) > 8 || text[0] == '-' {
		return 0, false
	}
	total, part := 0, 0
	for i, w := range words {
		switch v, ok := englishWord(w); {
		case w == "and" && total+part > 0 && i < len(words)-1:
		case (w == "a" || w == "an") && i > 0:
			return 0, false
		case w == "hundred" && part > 0 && part < 100:
			part *= 100
		case w == "thousand" && part > 0 && total == 0:
			total, part = part*1000, 0
		case ok && (part == 0 || part%100 == 0 || (part%10 == 0 && part%100 >= 20 && v < 10)):
			part += v
		default:
			return 0, false
		}
	}
	return total + part, true
}

func englishWord(w string) (int, bool) {
	small := [...]string{
		"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
		"thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
	}
	tens := [...]string{"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}
	if i := slices.Index(small[:], w); i >= 0 {
		return i, true
	}
	if i := slices.Index(tens[:], w); i >= 0 {
		return (i + 2) * 10, true
	}
	if w == "a" || w == "an" {
		return 1, true
	}
	n, err := strconv.Atoi(w)
	return n, err == nil && n >= 0 && n < maxNumber && w[0] != '+'
}

// LeadingDecimal reads the number in Chinese, full-width digits or English words
// that text begins with, as a decimal in plain digits: 三点一四 and three point
// one four are 3.14. The words a and an are no numbers here.
func LeadingDecimal(text string) (decimal, rest string, ok bool) {
	point, digitIn := "点", leadingDigit
	n, rest, ok := leadingNumber(text)
	if !ok {
		n, rest, ok = leadingWords(text)
		if !ok || strings.HasPrefix(text, "a ") || strings.HasPrefix(text, "an ") || text == "a" || text == "an" {
			return "", text, false
		}
		point, digitIn = " point", leadingDigitWord
	}
	decimal = strconv.Itoa(n)
	fraction, ok := strings.CutPrefix(rest, point)
	digits := ""
	for ok && len(digits) < 50 {
		if n, fraction, ok = digitIn(fraction); ok {
			digits += strconv.Itoa(n)
		}
	}
	if digits == "" {
		return decimal, rest, true
	}
	return decimal + "." + digits, fraction, true
}

// leadingDigit reads the digit, Chinese or not, that text begins with.
func leadingDigit(text string) (n int, rest string, ok bool) {
	r, size := utf8.DecodeRuneInString(text)
	if n, ok = chineseDigit(r); !ok {
		n, ok = digit(r)
	}
	if !ok {
		return 0, text, false
	}
	return n, text[size:], true
}

// leadingDigitWord reads the digit in English, after a space, that text begins with.
func leadingDigitWord(text string) (n int, rest string, ok bool) {
	word, rest := firstWord(strings.TrimPrefix(text, " "))
	if n, ok = englishWord(word); !ok || n > 9 {
		return 0, text, false
	}
	return n, rest, true
}

// firstWord is the English word that text begins with.
func firstWord(text string) (word, rest string) {
	rest = strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz")
	return text[:len(text)-len(rest)], rest
}

// cursor reads a text from left to right. The text is in lower case.
type cursor struct{ rest string }

// fold is the text as a cursor reads it: lower case, ASCII signs for wide ones.
func fold(text string) string {
	text = strings.NewReplacer("：", ":", "，", ",", "。", "", "　", " ", "．", ".", "’", "'").Replace(strings.ToLower(text))
	return strings.TrimSpace(text)
}

// take goes over the first of the words that comes next. An English word must end there.
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
