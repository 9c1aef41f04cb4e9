package rules

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/city"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/spoken"
)

var (
	//go:embed cover.zh.yaml
	chineseCoverFile string
	//go:embed cover.en.yaml
	englishCoverFile string
	//go:embed home.zh.yaml
	chineseHomeFile string
	//go:embed home.en.yaml
	englishHomeFile string

	chineseCover = sync.OnceValue(func() *coverage { return readCoverage(chineseCoverFile, text.Chinese, nil) })
	englishCover = sync.OnceValue(func() *coverage { return readCoverage(englishCoverFile, text.English, nil) })
	chineseHome  = sync.OnceValue(func() *coverage { return readHomeCoverage(chineseHomeFile, text.Chinese, chineseCover()) })
	englishHome  = sync.OnceValue(func() *coverage { return readHomeCoverage(englishHomeFile, text.English, englishCover()) })
)

// coverage understands a request by what its words mean, in whatever order they come, where each of them is known:
// the files cover.*.yaml say what the lists are for. It is read-only.
type coverage struct {
	Meanings map[string][]string `yaml:"meanings"`
	Free     []string            `yaml:"free"`
	Filler   []string            `yaml:"filler"`
	Wishes   []wish              `yaml:"wishes"`

	numbers bool                // of the slots, numbers alone may be filled
	join    string              // what stands between words
	words   map[string][]string // the meanings of a word; "" is a filler
	longest int                 // the words, in Chinese the signs, of the longest of them
}

// wish holds the sets of meanings by which something is wanted: "howlong|howmuch <day> [left]".
type wish struct {
	Act    act      `yaml:"act"`
	Level  level    `yaml:"level"`
	By     int      `yaml:"by"`
	Number int      `yaml:"number"` // in percent, where none is said
	About  string   `yaml:"about"`  // what of it is asked for
	When   []string `yaml:"when"`
	May    []string `yaml:"may"` // what may stand beside each of the sets

	sets []set
}

// set is one of the sets of a wish, cut into what must be there and what may.
type set struct {
	must [][]string // of each at least one
	may  []string
}

// readHomeCoverage reads the words for things at home, beside the fillers of base.
func readHomeCoverage(file string, lang text.Lang, base *coverage) *coverage {
	c := readCoverage(file, lang, base.Filler)
	c.numbers = true
	return c
}

// readCoverage reads an embedded file, in which an error is a bug. filler are words that mean nothing, but for those that have a meaning there.
func readCoverage(file string, lang text.Lang, filler []string) *coverage {
	c := &coverage{words: map[string][]string{}, join: lang.Pick("", " ")}
	d := yaml.NewDecoder(strings.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil {
		panic(fmt.Sprintf("rules: embedded words: %v", err))
	}
	add := func(word, meaning string) {
		c.words[word] = append(c.words[word], meaning)
		c.longest = max(c.longest, len(strings.Fields(word)))
		if lang.IsChinese() {
			c.longest = max(c.longest, utf8.RuneCountInString(word))
		}
	}
	for _, word := range c.Filler {
		add(word, "")
	}
	for _, meaning := range slices.Sorted(maps.Keys(c.Meanings)) {
		for _, word := range c.Meanings[meaning] {
			add(word, meaning)
		}
	}
	for _, word := range filler {
		if len(c.words[word]) == 0 {
			add(word, "")
		}
	}
	for _, name := range city.Names() {
		if (text.Of(name) == text.Chinese) == lang.IsChinese() {
			add(name, "<city>")
		}
	}
	for i, w := range c.Wishes {
		for _, when := range w.When {
			s := set{may: slices.Concat(w.May, c.Free)}
			for part := range strings.FieldsSeq(when) {
				any := strings.Split(strings.Trim(part, "[]"), "|")
				if strings.HasPrefix(part, "[") {
					s.may = append(s.may, any...)
				} else {
					s.must = append(s.must, any)
				}
			}
			c.Wishes[i].sets = append(c.Wishes[i].sets, s)
		}
	}
	return c
}

// covers understands a text by its words, where all that the brain knows may be used.
func (b *Brain) covers(said string, zone *time.Location, s scope) (intent, bool) {
	if s == fastOnly {
		return intent{}, false
	}
	now := b.options.Now().In(zone)
	if text.Of(said) == text.Chinese {
		return chineseCover().read(b.words(said), now, nil)
	}
	return englishCover().read(b.words(said), now, nil)
}

// words cuts what was said into its words, in Chinese its signs, without the name of the assistant.
func (b *Brain) words(said string) []string {
	if text.Of(said) == text.Chinese {
		signs := chineseWhole().chineseForms(said, b.options.Name)[0]
		for _, name := range []string{assistantName(), chineseSigns(b.options.Name)} {
			if rest := strings.ReplaceAll(signs, name, ""); name != "" && rest != "" {
				signs = rest
			}
		}
		return strings.Split(signs, "")
	}
	k := englishWhole()
	words := k.englishWords(said)
	for _, name := range [][]string{k.englishWords(b.options.Name), {"xiaozhi"}, {"xiao", "zhi"}} {
		for i := 0; i+len(name) < len(words)+1 && len(name) > 0 && len(words) > len(name); i++ {
			if slices.Equal(words[i:i+len(name)], name) {
				words = slices.Delete(words, i, i+len(name))
			}
		}
	}
	return words
}

// Limits of a request that is understood by its words, in words or Chinese signs.
const (
	maxCovered = 24
	maxOwn     = 6 // that are not known, such as what a timer is for
)

// piece is a run of words with what they may mean. One that nobody knows means "?".
type piece struct {
	meanings []string
	value    string
}

// read understands words; in Chinese they are signs, which join without spaces. names have meanings beside those of the file. All of them must be known, but for a few in a row where a wish has a <text>.
func (c *coverage) read(words []string, now time.Time, names map[string]string) (intent, bool) {
	if len(words) > maxCovered {
		return intent{}, false
	}
	pieces := c.cut(words, now, names)
	for _, w := range c.Wishes {
		for _, s := range w.sets {
			if found, ok := s.fits(pieces, c.join); ok {
				return w.intent(found, c.join)
			}
		}
	}
	return intent{}, false
}

// cut cuts words into pieces, each the longest that is known from where it begins.
func (c *coverage) cut(words []string, now time.Time, names map[string]string) (pieces []piece) {
	for len(words) > 0 {
		p, used := c.next(words, now, names)
		pieces, words = append(pieces, p), words[used:]
	}
	return pieces
}

var plainWords = strings.NewReplacer("<", "", ">", "")

// next reads what the words begin with.
func (c *coverage) next(words []string, now time.Time, names map[string]string) (p piece, used int) {
	for n := min(len(words), max(c.longest, 9)); n > 0; n-- {
		said := strings.Join(words[:n], c.join)
		bare := plainWords.Replace(said)
		p := piece{value: bare}
		if name, ok := names[bare]; ok {
			p.meanings = append(p.meanings, name)
		}
		p.meanings = append(p.meanings, c.words[said]...)
		slot, value := c.slot(said, bare, now)
		if slot != "" {
			p.meanings, p.value = append(p.meanings, slot), value
		}
		if len(p.meanings) > 0 {
			return p, n
		}
	}
	return piece{[]string{"?"}, plainWords.Replace(words[0])}, 1
}

var (
	aNumber   = regexp.MustCompile(`^(?:<\d+%?>|(?:百分之)?[0-9零一二两三四五六七八九十百]+%?)$`)
	aYear     = regexp.MustCompile(`^(?:<(?:19|20)\d\d>|<(?:19|20)> <\d\d>|(?:19|20)\d\d年?|[一二][九零〇][零〇一二三四五六七八九]{2}年?|[零〇一二三四五六七八九]{2}年)$`)
	aClock    = regexp.MustCompile(`[0-9点早晚]|noon|midnight|中午|[上下]午`)
	anOrdinal = regexp.MustCompile(`^(?:第[0-9一二三四五六七八九十]+[条个则篇]?|(?:number|story|headline|item) <\d+>|(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)(?: one| story| headline| item)?)$`)
)

// slot returns the slot that words fill, "" for none, and what they are then.
func (c *coverage) slot(said, bare string, now time.Time) (slot, value string) {
	if c.numbers {
		if share, ok := shareOf(bare); ok {
			return "<number>", share
		}
		if aNumber.MatchString(said) {
			return "<number>", bare
		}
		return "", ""
	}
	if aYear.MatchString(said) {
		return "<year>", bare
	}
	if anOrdinal.MatchString(said) {
		return "<ordinal>", bare
	}
	if strings.HasPrefix(bare, "for ") || strings.HasPrefix(bare, "in ") {
		return "", "" // the words after it may be
	}
	if share, ok := shareOf(bare); ok {
		return "<number>", share
	}
	if _, err := spoken.Duration(bare); err == nil {
		return "<length>", bare
	}
	if aNumber.MatchString(said) {
		return "<number>", bare
	}
	if _, ok := lunar.Find(trimDay(bare), now); ok {
		return "<day>", bare
	}
	if _, _, err := spoken.When(clockPoint.ReplaceAllString(bare, "$1:$2"), now); err == nil && aClock.MatchString(bare) {
		return "<when>", bare
	}
	return "", ""
}

var (
	englishShare = regexp.MustCompile(`^(?:(a|1|2|3|4) )?(half|halves|thirds?|quarters?|fifths?)(?: of)?$`)
	chineseShare = regexp.MustCompile(`^([0-9一二三四五六七八九])成(半)?$|^([0-9一二三四五六七八九])分之([0-9一二三四五六七八九])$|^(一半|半)$`)
)

// shareOf reads a part of the whole, as percent: three quarters, 三成半, 三分之一, 一半.
func shareOf(words string) (percent string, ok bool) {
	if m := englishShare.FindStringSubmatch(words); m != nil {
		of := map[string]int{"half": 2, "halves": 2, "third": 3, "quarter": 4, "fifth": 5}[strings.TrimSuffix(m[2], "s")]
		if m[2] == "halves" {
			of = 2
		}
		n := max(1, int(strings.Index("a1234", m[1])))
		if m[1] == "" || m[1] == "a" {
			n = 1
		}
		return strconv.Itoa((200*n/of+1)/2) + "%", n <= of
	}
	m := chineseShare.FindStringSubmatch(words)
	switch {
	case m == nil:
		return "", false
	case m[5] != "":
		return "50%", true
	case m[1] != "":
		n, _ := spoken.Number(m[1])
		if n *= 10; m[2] != "" {
			n += 5
		}
		return strconv.Itoa(n) + "%", true
	}
	of, _ := spoken.Number(m[3])
	n, _ := spoken.Number(m[4])
	if of == 0 || n > of {
		return "", false
	}
	return strconv.Itoa((200*n/of+1)/2) + "%", true
}

// fits reports whether pieces are all that a set needs, and nothing that it does not know, and what each meaning of it is. Pieces that
// nobody knows are its <text>, if they stand together.
func (s set) fits(pieces []piece, join string) (found map[string]string, ok bool) {
	found = map[string]string{}
	wants := func(meaning string) bool {
		return slices.Contains(s.may, meaning) || slices.ContainsFunc(s.must, func(any []string) bool { return slices.Contains(any, meaning) })
	}
	begun, ended := -1, -1 // of the <text>
	for i, p := range pieces {
		if p.meanings[0] == "?" {
			if begun < 0 {
				begun = i
			}
			ended = i
			continue
		}
		used := slices.Contains(p.meanings, "")
		for _, meaning := range p.meanings { // a word first, then what fills a slot
			if !wants(meaning) || used && strings.HasPrefix(meaning, "<") && meaning != p.meanings[0] {
				continue
			}
			if old, twice := found[meaning]; twice && strings.HasPrefix(meaning, "<") && old != p.value {
				return nil, false
			}
			found[meaning], used = p.value, true
		}
		if !used {
			return nil, false
		}
	}
	if begun >= 0 {
		own := make([]string, 0, ended-begun+1)
		for _, p := range pieces[begun : ended+1] {
			if !slices.Contains(p.meanings, "?") && !slices.Contains(p.meanings, "") {
				return nil, false // it is torn apart
			}
			own = append(own, p.value)
		}
		if !wants("<text>") || len(own) > maxOwn {
			return nil, false
		}
		found["<text>"] = strings.Join(own, join)
	}
	for _, any := range s.must {
		if !slices.ContainsFunc(any, func(meaning string) bool { _, is := found[meaning]; return is }) {
			return nil, false
		}
	}
	return found, true
}

// intent makes the intent of a wish.
func (w wish) intent(found map[string]string, join string) (intent, bool) {
	in := intent{act: w.Act, level: w.Level, by: w.By, number: none, about: w.About}
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
	for meaning, said := range found {
		if name, ok := strings.CutPrefix(meaning, "<"); ok {
			name = strings.TrimSuffix(name, ">")
			in.slots[name] = century(name, said)
		} else if w.Act.atHome() {
			in.slots[meaning] = said // what kind of thing, and the like
		}
	}
	in.asked.what = found["<text>"]
	switch w.Act {
	case actTimer:
		var err error
		in.length, err = spoken.Duration(found["<length>"])
		return in, err == nil
	case actWake, actRemind:
		in.asked.when = strings.TrimSpace(clockPoint.ReplaceAllString(found["<day>"]+join+found["<when>"], "$1:$2"))
	default:
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
