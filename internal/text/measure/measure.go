// Package measure converts quantities between units, with numbers and units as people say them in Chinese and
// English: 三斤半, 一米八, six feet two inches, a pound. It is pure. All functions may be called at the same time.
package measure

import (
	_ "embed"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// unitsFile has a line for each unit: what it measures, the factor and what is added to come to the first unit of
// that, its Chinese names with commas between them, and its English names, the plural first.
//
//go:embed units.txt
var unitsFile string

// unit is a measure that quantities are told in.
type unit struct {
	of            string // what it measures
	factor, added float64
	zh            string   // its usual Chinese name
	en            []string // its English names: plural, singular, others
}

// units are all units by their names.
var units = sync.OnceValue(func() map[string]*unit {
	all := make(map[string]*unit)
	for line := range strings.Lines(unitsFile) {
		fields := strings.Fields(line)
		u := &unit{of: fields[0]}
		u.factor, _ = strconv.ParseFloat(fields[1], 64) // the tests read every line
		u.added, _ = strconv.ParseFloat(fields[2], 64)
		for i, name := range strings.Split(fields[3], ",") {
			if all[name] = u; i == 0 {
				u.zh = name
			}
		}
		for _, name := range fields[4:] {
			name = strings.ReplaceAll(name, "_", " ")
			u.en, all[name] = append(u.en, name), u
		}
	}
	return all
})

// unitOf finds a unit by its name.
func unitOf(name string) *unit {
	name = strings.ToLower(strings.TrimSpace(name))
	return units()[strings.TrimPrefix(name, "个")]
}

// say returns a value with the name of the unit.
func (u *unit) say(value float64, lang text.Lang) string {
	number := Round(value)
	if lang.IsChinese() {
		return number + u.zh
	}
	if value == 1 && len(u.en) > 1 {
		return number + " " + u.en[1]
	}
	return number + " " + u.en[0]
}

// Round returns a number in the digits that are worth saying: all of them if it has two decimals at most, else
// two below 100, one above, and three significant ones below 1.
func Round(value float64) string {
	scale, size := 100.0, math.Abs(value)
	if math.Abs(value*100-math.Round(value*100)) > 1e-7*max(1, size*100) {
		switch {
		case size >= 100:
			scale = 10
		case size < 1 && size > 0:
			scale = math.Pow(10, 2-math.Floor(math.Log10(size)))
		}
	}
	return strconv.FormatFloat(math.Round(value*scale)/scale, 'f', -1, 64)
}

// Convert returns a quantity in another unit, as an answer: 1 pound is 453.6 grams. It is false for what is no
// quantity or unit, and where the two measure different things.
func Convert(from, to string, lang text.Lang) (string, bool) {
	value, of, ok := read(from)
	u := unitOf(to)
	if !ok || u == nil || u.of != of.of || u == of {
		return "", false
	}
	result := (value*of.factor + of.added - u.added) / u.factor
	return of.say(value, lang) + lang.Pick("是", " is ") + u.say(result, lang) + lang.Pick("。", "."), true
}

// read reads a quantity: in one unit, or in several that measure the same. The unit is the first.
func read(words string) (value float64, of *unit, ok bool) {
	words = strings.ToLower(strings.TrimSpace(words))
	for _, mark := range []string{"华氏", "摄氏"} { // 华氏一百度
		if rest, found := strings.CutPrefix(words, mark); found && strings.HasSuffix(rest, "度") {
			words = strings.TrimSuffix(rest, "度") + mark + "度"
		}
	}
	if feet.MatchString(words) {
		words += " inches"
	}
	for words != "" {
		n, rest, found := number(words)
		if !found {
			return 0, nil, false
		}
		u, rest := unitAt(rest)
		if u == nil || of != nil && (u.of != of.of || u.added != 0 || u.factor >= of.factor) {
			return 0, nil, false
		}
		if of == nil {
			of = u
		}
		value += n * u.factor / of.factor
		rest, part := fraction(withoutThing(rest))
		value += part * u.factor / of.factor
		words = strings.TrimPrefix(strings.TrimSpace(rest), "and ")
	}
	return value, of, of != nil
}

// feet is a height without its last unit: six foot two.
var feet = regexp.MustCompile(`\b(?:foot|feet) (?:\w+)$`)

// number reads the number before a unit: 三, 3.5, 半, a, half a, one and a half. No number is one.
func number(words string) (n float64, rest string, ok bool) {
	for _, half := range []string{"half a ", "half an ", "半个", "半"} {
		if rest, ok := strings.CutPrefix(words, half); ok {
			return 0.5, rest, true
		}
	}
	for _, one := range []string{"a ", "an ", "one "} {
		if rest, ok := strings.CutPrefix(words, one); ok && !strings.HasPrefix(rest, "and ") && !strings.HasPrefix(rest, "hundred") && !strings.HasPrefix(rest, "thousand") {
			return 1, rest, true
		}
	}
	sign := 1.0
	for _, minus := range []string{"minus ", "negative ", "-", "零下", "负"} {
		if rest, ok := strings.CutPrefix(words, minus); ok {
			sign, words = -1, rest
		}
	}
	if rest, ok := strings.CutPrefix(words, "a "); ok && (strings.HasPrefix(rest, "hundred") || strings.HasPrefix(rest, "thousand")) {
		words = "one " + rest
	}
	weight := "" // 三两 is no 32
	if before, after, ok := strings.Cut(words, "两"); ok && before != "" && strings.Trim(before, "一二三四五六七八九十百0123456789") == "" {
		words, weight = before, "两"+after
	}
	digits, rest, ok := spoken.LeadingDecimal(words)
	rest += weight
	if point, after := leadingPoint(rest); ok && point != "" {
		digits, rest = digits+point, after
	}
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil {
		return 0, words, false
	}
	rest = strings.TrimSpace(rest)
	for _, half := range []string{"and a half ", "个半"} {
		if after, ok := strings.CutPrefix(rest, half); ok {
			return sign * (n + 0.5), after, true
		}
	}
	return sign * n, rest, true
}

// leadingPoint reads the decimals in plain digits that follow a number.
func leadingPoint(words string) (point, rest string) {
	rest = strings.TrimLeft(strings.TrimPrefix(words, "."), "0123456789")
	if !strings.HasPrefix(words, ".") || len(words)-len(rest) < 2 {
		return "", words
	}
	return words[:len(words)-len(rest)], rest
}

// unitAt reads the unit that words begin with, the longest that there is.
func unitAt(words string) (found *unit, rest string) {
	words = strings.TrimPrefix(strings.TrimSpace(words), "个")
	longest := ""
	for name := range units() {
		after, ok := strings.CutPrefix(words, name)
		letter := name[0] < 0x80
		if ok && len(name) > len(longest) && (!letter || after == "" || after[0] == ' ') {
			longest = name
		}
	}
	if longest == "" {
		return nil, words
	}
	return units()[longest], words[len(longest):]
}

// withoutThing drops what is measured: the 肉 of 一斤肉, the of butter of a pound of butter.
func withoutThing(words string) string {
	if strings.HasPrefix(words, " of ") {
		return ""
	}
	if n := utf8.RuneCountInString(words); n > 0 && n <= 2 && words[0] >= 0x80 && !strings.ContainsAny(words, "半零一二两三四五六七八九十百千") {
		return ""
	}
	return words
}

// fraction reads what follows a Chinese unit as its part: the 半 of 三斤半, the 八 of 一米八, the 七五 of 一米七五.
func fraction(words string) (rest string, part float64) {
	if words == "半" {
		return "", 0.5
	}
	signs := []rune(words)
	if len(signs) == 0 || len(signs) > 2 || signs[len(signs)-1] == '两' { // 两斤三两
		return words, 0
	}
	scale := 0.1
	for _, r := range signs {
		n, ok := spoken.Number(string(r))
		if !ok || n > 9 {
			return words, 0
		}
		part, scale = part+float64(n)*scale, scale/10
	}
	return "", part
}
