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

// letters counts those of a text by their scripts.
type letters struct {
	latins, marks, hans, kanas, hanguls int // marks: Latin letters of Vietnamese alone

	others []int // of others; nil: none
	any    bool  // there is a letter, be it of a script that is not known
}

// count adds the letter r.
func (n *letters) count(r rune) {
	n.any = true
	switch {
	case r <= unicode.MaxLatin1 || unicode.Is(unicode.Latin, r):
		n.latins++
		if r >= 0x1ea0 && r <= 0x1ef9 || strings.ContainsRune("ơưđăƠƯĐĂ", r) {
			n.marks++
		}
	case unicode.Is(unicode.Han, r):
		n.hans++
	case unicode.In(r, unicode.Hiragana, unicode.Katakana):
		n.kanas++
	case unicode.Is(unicode.Hangul, r):
		n.hanguls++
	default:
		for i := range others {
			if unicode.Is(others[i].letters, r) {
				if n.others == nil {
					n.others = make([]int, len(others))
				}
				n.others[i]++
				return
			}
		}
	}
}

// scriptOf returns the script of a text, "" if it holds no letter. Chinese signs count however few
// they are beside Latin letters; other scripts if they make up a third of the text.
func scriptOf(s string) script {
	var n letters
	for _, r := range s {
		if unicode.IsLetter(r) {
			n.count(r)
		}
	}
	best, most := script(""), 0
	take := func(s script, letters int) {
		if letters > most && letters*2 >= n.latins {
			best, most = s, letters
		}
	}
	switch {
	case n.kanas*5 >= n.hans && n.kanas > 0: // a lone の does not make Chinese words Japanese
		take(japanese, (n.hans+n.kanas)*signWeight)
	case n.hans > 0:
		best, most = han, n.hans*signWeight
	}
	take(korean, n.hanguls*signWeight)
	for i, count := range n.others {
		take(others[i].script, count)
	}
	switch {
	case best != "":
		return best
	case n.marks > 0 && n.marks*12 >= n.latins:
		return vietnamese
	case n.latins > 0:
		return latin
	case n.any:
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
