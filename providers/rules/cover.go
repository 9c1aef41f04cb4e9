package rules

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/spoken"
)

var (
	//go:embed cover.zh.yaml
	chineseCoverFile string
	//go:embed cover.en.yaml
	englishCoverFile string

	chineseCover = sync.OnceValue(func() *coverage { return readCoverage(chineseCoverFile) })
	englishCover = sync.OnceValue(func() *coverage { return readCoverage(englishCoverFile) })
)

// coverage understands a request by what its words mean, in whatever order they come, where each of them is known:
// the files cover.*.yaml say what the lists are for. It is read-only.
type coverage struct {
	Meanings map[string][]string `yaml:"meanings"`
	Free     []string            `yaml:"free"`
	Filler   []string            `yaml:"filler"`
	Wishes   []wish              `yaml:"wishes"`

	words   map[string]string // the meaning of a word, "" of a filler
	longest int               // the words, in Chinese the signs, of the longest of them
}

// wish holds the sets of meanings by which something is wanted: "howlong <day> [left]".
type wish struct {
	Act    act      `yaml:"act"`
	Level  level    `yaml:"level"`
	By     int      `yaml:"by"`
	Number int      `yaml:"number"` // in percent, where none is said
	When   []string `yaml:"when"`
}

func readCoverage(file string) *coverage {
	c := &coverage{words: map[string]string{}}
	d := yaml.NewDecoder(strings.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil {
		panic(fmt.Sprintf("rules: embedded words: %v", err))
	}
	for _, word := range c.Filler {
		c.words[word] = ""
	}
	for meaning, words := range c.Meanings {
		for _, word := range words {
			c.words[word] = meaning
		}
	}
	for word := range c.words {
		c.longest = max(c.longest, len(strings.Fields(word)))
		if text.Of(word) == text.Chinese {
			c.longest = max(c.longest, utf8.RuneCountInString(word))
		}
	}
	return c
}

// covers understands a text by its words, where all that the brain knows may be used.
func (b *Brain) covers(said string, zone *time.Location, s scope) (intent, bool) {
	if s == fastOnly {
		return intent{}, false
	}
	return b.covered(said, zone)
}

// covered understands a text by its words. In Chinese they are its signs, which join without spaces.
func (b *Brain) covered(said string, zone *time.Location) (intent, bool) {
	now := b.options.Now().In(zone)
	if text.Of(said) == text.Chinese {
		forms := chineseWhole().chineseForms(said, b.options.Name)
		return chineseCover().read(strings.Split(forms[0], ""), "", now)
	}
	return englishCover().read(englishWhole().englishWords(said), " ", now)
}

// maxCovered is how many words, or Chinese signs, a request may have that is understood by its words.
const maxCovered = 24

// read understands words, each of which must be known.
func (c *coverage) read(words []string, join string, now time.Time) (intent, bool) {
	if len(words) > maxCovered {
		return intent{}, false
	}
	found := map[string]string{}
	for len(words) > 0 {
		meaning, value, used := c.next(words, join, now)
		if used == 0 {
			return intent{}, false
		}
		if old := found[meaning]; meaning != "" {
			if old != "" && strings.HasPrefix(meaning, "<") {
				return intent{}, false
			}
			found[meaning] = value
		}
		words = words[used:]
	}
	for _, w := range c.Wishes {
		for _, when := range w.When {
			if c.fits(when, found) {
				return w.intent(found, join)
			}
		}
	}
	return intent{}, false
}

// next reads what the words begin with: the longest that is known.
func (c *coverage) next(words []string, join string, now time.Time) (meaning, value string, used int) {
	plain := strings.NewReplacer("<", "", ">", "")
	for n := min(len(words), max(c.longest, 9)); n > 0; n-- {
		said := strings.Join(words[:n], join)
		if known, ok := c.words[said]; ok {
			return known, said, n
		}
		bare := plain.Replace(said)
		if slot := slotOf(said, bare, now); slot != "" {
			return slot, bare, n
		}
	}
	return "", "", 0
}

var (
	aNumber = regexp.MustCompile(`^(?:<\d+%?>|(?:百分之)?[0-9零一二两三四五六七八九十百]+%?)$`)
	aYear   = regexp.MustCompile(`^(?:<(?:19|20)\d\d>|<(?:19|20)> <\d\d>|(?:19|20)\d\d年?|[一二][九零〇][零〇一二三四五六七八九]{2}年?|[零〇一二三四五六七八九]{2}年)$`)
)

// slotOf returns the slot that words fill, "" for none.
func slotOf(said, bare string, now time.Time) string {
	if aYear.MatchString(said) {
		return "<year>"
	}
	if strings.HasPrefix(bare, "for ") || strings.HasPrefix(bare, "in ") {
		return "" // the words after it may be
	}
	if _, err := spoken.Duration(bare); err == nil {
		return "<length>"
	}
	if aNumber.MatchString(said) {
		return "<number>"
	}
	if _, ok := lunar.Find(trimDay(bare), now); ok {
		return "<day>"
	}
	if _, _, err := spoken.When(clockPoint.ReplaceAllString(bare, "$1:$2"), now); err == nil && strings.ContainsAny(bare, "0123456789点noonmidnight早晚中下") {
		return "<when>"
	}
	return ""
}

// fits reports whether what was found is all that a wish needs, and nothing that it does not know.
func (c *coverage) fits(when string, found map[string]string) bool {
	known := 0
	for part := range strings.FieldsSeq(when) {
		name := strings.Trim(part, "[]")
		_, is := found[name]
		if !is && name == part {
			return false
		}
		if is {
			known++
		}
	}
	for name := range found {
		if slices.Contains(c.Free, name) && !slices.Contains(strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(when)), name) {
			known++
		}
	}
	return known == len(found)
}

// intent makes the intent of a wish.
func (w wish) intent(found map[string]string, join string) (intent, bool) {
	in := intent{act: w.Act, level: w.Level, by: w.By, number: none}
	switch said, ok := found["<number>"]; {
	case ok:
		bare := strings.TrimSuffix(strings.TrimPrefix(said, "百分之"), "%")
		number := digits
		if text.Of(bare) == text.Chinese {
			number = chineseNumber
		}
		n, read := number(bare)
		if !read || n > 100 {
			return intent{}, false
		}
		in.number, in.share = n, bare != said
	case w.Number > 0:
		in.number, in.share = w.Number, true
	case w.By > 0:
		in.number = w.By
	}
	in.slots = slots{}
	for _, name := range []string{"day", "year"} {
		if said, ok := found["<"+name+">"]; ok {
			in.slots[name] = century(name, said)
		}
	}
	switch w.Act {
	case actTimer:
		var err error
		in.length, err = spoken.Duration(found["<length>"])
		return in, err == nil
	case actWake, actRemind:
		in.asked.when = strings.TrimSpace(clockPoint.ReplaceAllString(found["<day>"]+join+found["<when>"], "$1:$2"))
	}
	return in, true
}

// century writes 八八年 as a year of the last hundred years.
func century(name, said string) string {
	digits := strings.TrimSuffix(said, "年")
	if name != "year" || utf8.RuneCountInString(digits) != 2 || digits == said {
		return said
	}
	n, ok := spoken.Number(digits)
	if !ok {
		return said
	}
	if n < 50 {
		n += 100
	}
	return strconv.Itoa(1900 + n)
}
