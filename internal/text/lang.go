package text

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// Lang is a language as a tag of BCP 47 in its shortest form: "zh", "en", "ja", "pt-PT", "zh-TW".
// [ParseLang] makes one. It is empty where no language is known.
type Lang string

// The languages that every text of the program is there in.
const (
	Chinese Lang = "zh"
	English Lang = "en"
)

// fewWords is how many words in Latin script tell that English was spoken, where another script is usual.
const fewWords = 3

// maxTag is the longest tag that is read, in bytes.
const maxTag = 64

// ParseLang reads a tag of BCP 47, with "_" for "-" too. A region that goes without saying is left
// out, and so are extensions: zh-CN is "zh", en_US is "en", zh-TW stays. The error names what is wrong.
func ParseLang(tag string) (Lang, error) {
	if len(tag) > maxTag {
		return "", fmt.Errorf("a language tag has at most %d signs", maxTag)
	}
	t, err := language.Parse(strings.TrimSpace(tag))
	if err != nil {
		return "", fmt.Errorf("language tag %q: %w", tag, err)
	}
	base, script, region := t.Raw()
	if base.String() == "und" {
		return "", fmt.Errorf("language tag %q names no language", tag)
	}
	if base.String() == "cmn" {
		base = language.MustParseBase("zh")
	}
	short, _ := language.Raw.Compose(base)
	if script.String() != "Zzzz" {
		if usual, _ := short.Script(); usual != script {
			short, _ = language.Raw.Compose(base, script)
		}
	}
	if region.String() != "ZZ" {
		if usual, _ := short.Region(); usual != region {
			short, _ = language.Raw.Compose(short, region)
		}
	}
	return Lang(short.String()), nil
}

// TagOf returns the language of a tag, "" for one that is none.
func TagOf(tag string) Lang {
	switch tag {
	case "", string(Chinese), string(English):
		return Lang(tag)
	}
	l, err := ParseLang(tag)
	if err != nil {
		return ""
	}
	return l
}

// Base returns the language without script and region.
func (l Lang) Base() Lang {
	base, _, _ := strings.Cut(string(l), "-")
	return Lang(base)
}

// IsChinese reports whether the texts for it are the Chinese ones: Chinese of any region, and
// Cantonese and others that are written with it.
func (l Lang) IsChinese() bool {
	base := l.Base()
	return base == Chinese || strings.Contains(" cmn yue wuu nan hak gan hsn ", " "+string(base)+" ")
}

// IsEnglish reports whether it is English of any region.
func (l Lang) IsEnglish() bool { return l.Base() == English }

// IsOwn reports whether the program has rules of its own for it: it is Chinese or English, or none is known.
func (l Lang) IsOwn() bool { return l == "" || l.IsChinese() || l.IsEnglish() }

// Pick returns zh if l is Chinese, and en for every other language.
func (l Lang) Pick(zh, en string) string {
	if l.IsChinese() {
		return zh
	}
	return en
}

// Fallbacks returns the languages in which a text is looked for, in this order: l, l with less
// and less said of script and region, Chinese if it is written so, English.
func (l Lang) Fallbacks() []Lang {
	var all []Lang
	for tag := string(l); tag != ""; {
		all = append(all, Lang(tag))
		tag = tag[:max(0, strings.LastIndexByte(tag, '-'))]
	}
	if l.IsChinese() {
		all = append(all, Chinese)
	}
	return slices.Compact(append(all, English))
}

// Find returns the value for a language out of a map by tags: that of the tag itself, else of the
// language without region, else of the nearest one that its speakers understand.
func Find[V any](byTag map[string]V, l Lang) (v V, found bool) {
	if l == "" || len(byTag) == 0 {
		return v, false
	}
	for _, f := range l.Fallbacks() {
		if f == English && !l.IsEnglish() {
			break
		}
		if v, found = byTag[string(f)]; found {
			return v, true
		}
	}
	var keys []string
	for key := range byTag {
		if _, err := language.Parse(key); err == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	tags := make([]language.Tag, len(keys))
	for i, key := range keys {
		tags[i] = language.Make(key)
	}
	if len(tags) == 0 {
		return v, false
	}
	_, i, sure := language.NewMatcher(tags).Match(language.Make(string(l)))
	if sure == language.No {
		return v, false
	}
	return byTag[keys[i]], true
}

//go:embed languages.txt
var catalogue string

// names are those of one language.
type names struct{ tag, english, chinese, own string }

// named calls yield with the languages whose names are known, until it returns false.
func named(yield func(names) bool) {
	for line := range strings.Lines(catalogue) {
		parts := strings.Split(strings.TrimSpace(line), "; ")
		if len(parts) == 4 && !yield(names{parts[0], parts[1], parts[2], parts[3]}) {
			return
		}
	}
}

// Name returns what l is called in Chinese, in English, or, in itself and all others, by its own
// name. A language whose name is not known is called by its tag.
func (l Lang) Name(in Lang) string {
	for _, f := range l.Fallbacks() {
		if f == English && !l.IsEnglish() {
			break
		}
		for n := range named {
			switch {
			case n.tag != string(f):
			case in.IsChinese():
				return n.chinese
			case in == "" || in.IsEnglish():
				return n.english
			default:
				return n.own
			}
		}
	}
	return string(l)
}

// LangNamed returns the language of a name in English, in Chinese or in itself, or of a tag: what
// services call what they heard. It is "" for anything else.
func LangNamed(name string) Lang {
	switch {
	case name == "" || name == string(Chinese) || name == string(English):
		return Lang(name)
	case strings.EqualFold(name, "mandarin"):
		return Chinese
	}
	for n := range named {
		if strings.EqualFold(n.english, name) || n.chinese == name || strings.EqualFold(n.own, name) {
			return Lang(n.tag)
		}
	}
	return TagOf(name)
}

// NearestLang returns the tag that was probably meant by one that [ParseLang] refuses: that of the
// language by its name, of the one that is spoken in the country of that code, or the one with the
// fewest signs to change.
func NearestLang(wrong string) Lang {
	wrong = strings.TrimSpace(wrong)
	best, fewest := English, 1<<10
	if l := LangNamed(wrong); l != "" {
		return l
	}
	base, _, _ := strings.Cut(strings.ReplaceAll(wrong, "_", "-"), "-")
	if region, err := language.ParseRegion(strings.ToUpper(base)); err == nil && len(base) == 2 {
		if spoken, err := language.Compose(language.Und, region); err == nil {
			if b, sure := spoken.Base(); sure != language.No && b.String() != "und" {
				return Lang(b.String())
			}
		}
	}
	for n := range named {
		for _, name := range []string{n.tag, strings.ToLower(n.english), strings.ToLower(n.own)} {
			if d := Edits(name, strings.ToLower(wrong)); d < fewest {
				best, fewest = Lang(n.tag), d
			}
		}
	}
	return best
}

// Edits counts the single signs to change between two texts (Levenshtein).
func Edits(a, b string) int {
	target := []rune(b)
	row := make([]int, len(target)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range []rune(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j, t := range target {
			cost := diagonal
			if r != t {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(target)]
}

// Resolve returns the language of what was said: the one that the recogniser says it heard, unless
// the text is not written in it; else the one that the script of the text tells, or usual where that
// is written in this script; else what is usual. Latin script in a place where another one is usual is
// English, though a word or two are not where people speak neither Chinese nor English. It is "" if
// nothing is known.
func Resolve(said string, heard, usual Lang) Lang {
	s := scriptOf(said)
	switch {
	case s == "":
		return cmp.Or(usual, heard)
	case heard != "" && heard.writtenIn(s):
		if heard == usual.Base() {
			return usual // it is the same, and says more
		}
		return heard
	case s == vietnamese:
		return "vi"
	case usual.writtenIn(s):
		return usual
	case s == latin && !usual.IsOwn() && len(strings.Fields(said)) < fewWords:
		return usual // OK, Google
	}
	return s.usual(said)
}
