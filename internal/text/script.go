package text

import (
	"strings"
	"unicode"

	"golang.org/x/text/language"
)

// script is a way of writing, by its code of ISO 15924; "" is none.
type script string

// The scripts that are told apart by rules of their own.
const (
	latin      script = "Latn"
	vietnamese script = "Viet" // Latin letters with the marks of Vietnamese; no code of ISO
	han        script = "Hani" // and no other
	japanese   script = "Jpan"
	korean     script = "Kore"
)

// others are the further scripts that are looked for, with their letters.
var others = []struct {
	script
	letters *unicode.RangeTable
}{
	{"Cyrl", unicode.Cyrillic}, {"Arab", unicode.Arabic}, {"Thai", unicode.Thai}, {"Deva", unicode.Devanagari}, {"Hebr", unicode.Hebrew},
	{"Grek", unicode.Greek}, {"Beng", unicode.Bengali}, {"Taml", unicode.Tamil}, {"Telu", unicode.Telugu}, {"Khmr", unicode.Khmer},
	{"Laoo", unicode.Lao}, {"Mymr", unicode.Myanmar}, {"Geor", unicode.Georgian}, {"Armn", unicode.Armenian}, {"Ethi", unicode.Ethiopic},
	{"Gujr", unicode.Gujarati}, {"Knda", unicode.Kannada}, {"Mlym", unicode.Malayalam}, {"Guru", unicode.Gurmukhi}, {"Sinh", unicode.Sinhala},
}

// signWeight is how many letters a syllable sign counts as.
const signWeight = 3

// scriptOf returns the script of a text, "" if it holds no letter. Chinese signs count however few
// they are beside Latin letters; other scripts if they make up a third of the text.
func scriptOf(s string) script {
	var hans, kanas, hanguls, latins, marks int
	var counts []int // of others; made when the first is met
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r):
		case r <= unicode.MaxLatin1 || unicode.Is(unicode.Latin, r):
			latins++
			if r >= 0x1ea0 && r <= 0x1ef9 || strings.ContainsRune("ơưđăƠƯĐĂ", r) {
				marks++
			}
		case unicode.Is(unicode.Han, r):
			hans++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kanas++
		case unicode.Is(unicode.Hangul, r):
			hanguls++
		default:
			if counts == nil {
				counts = make([]int, len(others))
			}
			for i := range others {
				if unicode.Is(others[i].letters, r) {
					counts[i]++
					break
				}
			}
		}
	}
	best, most := script(""), 0
	take := func(s script, letters int) {
		if letters > most && letters*2 >= latins {
			best, most = s, letters
		}
	}
	switch {
	case kanas*5 >= hans && kanas > 0: // a lone の does not make Chinese words Japanese
		take(japanese, (hans+kanas)*signWeight)
	case hans > 0:
		best, most = han, hans*signWeight
	}
	take(korean, hanguls*signWeight)
	for i, n := range counts {
		take(others[i].script, n)
	}
	switch {
	case best != "":
		return best
	case marks > 0 && marks*12 >= latins:
		return vietnamese
	case latins > 0:
		return latin
	case strings.ContainsFunc(s, unicode.IsLetter):
		return "Zzzz"
	}
	return ""
}

// writtenIn reports whether l is written in s.
func (l Lang) writtenIn(s script) bool {
	switch {
	case l == "":
		return false
	case l.IsChinese():
		return s == han
	case l.IsEnglish():
		return s == latin
	}
	switch own, _ := language.Make(string(l)).Script(); own.String() {
	case "Jpan":
		return s == japanese || s == han
	case "Kore":
		return s == korean
	case "Latn":
		return s == latin || s == vietnamese && l.Base() == "vi" || s == "Cyrl" && l.Base() == "sr"
	default:
		return own.String() == string(s)
	}
}

// usual returns the language that is taken for granted where a text is in that script.
func (s script) usual(said string) Lang {
	switch s {
	case latin:
		switch {
		case strings.ContainsAny(said, "¿¡"):
			return "es"
		case strings.ContainsRune(said, 'ß'):
			return "de"
		}
		return English
	case vietnamese:
		return "vi"
	case han:
		return Chinese
	case japanese:
		return "ja"
	case korean:
		return "ko"
	case "Cyrl":
		if strings.ContainsAny(strings.ToLower(said), "їєґ") {
			return "uk"
		}
		return "ru"
	case "Zzzz":
		return English
	}
	code, err := language.ParseScript(string(s))
	if err != nil {
		return English
	}
	written, err := language.Compose(language.Und, code)
	if err != nil {
		return English
	}
	base, _ := written.Base()
	return Lang(base.String())
}
