package local

import (
	_ "embed"
	"regexp"
	"sort"
	"strings"
)

//go:embed phrases.txt
var phraseTable string

// readingTable holds how single characters are read: see providers/local/pinyin, which makes it.
//
//go:embed pinyin.readings
var readingTable string

const readingSize = 5 // bytes of a character in readingTable

// commonReadings are single characters whose most common reading is not the
// first one of the dictionary, or has a light tone there without its figure.
var commonReadings = map[rune]string{
	'长': "chang2", '教': "jiao1", '脏': "zang1", '哇': "wa5", '隻': "zhi1", '壹': "yi1", '幺': "yao1", '两': "liang3", '弄': "nong4",
	'调': "tiao2", '薄': "bao2", '削': "xiao1", '给': "gei3", '谁': "shei2", '哪': "na3", '那': "na4", '这': "zhe4", '哦': "o2",
	'嗯': "en5", '哎': "ai1", '唉': "ai1", '喂': "wei4", '地': "di4", '啊': "a5", '呀': "ya5", '吗': "ma5", '呢': "ne5", '吧': "ba5",
	'嘛': "ma5", '啦': "la5", '们': "men5", '的': "de5", '了': "le5", '着': "zhe5", '得': "de5", '么': "me5", '子': "zi3", '个': "ge4",
	'露': "lu4", '曝': "bao4", '血': "xue4", '逮': "dai3", '熟': "shu2", '色': "se4", '吓': "xia4", '咖': "ka1", '茄': "qie2",
	'行': "xing2", '重': "zhong4", '还': "hai2", '都': "dou1", '为': "wei4", '会': "hui4", '好': "hao3", '种': "zhong3", '发': "fa1",
	'乐': "le4", '觉': "jue2", '没': "mei2", '干': "gan4", '转': "zhuan3", '系': "xi4", '车': "che1", '石': "shi2", '盛': "sheng4",
}

// reader knows how Chinese characters are said. It is read-only.
type reader struct {
	phrases   map[string][]string
	longest   int      // characters
	syllables []string // that single characters have
	singles   string   // records of readingSize, by character
}

var syllable = regexp.MustCompile(`^[a-zv]+[1-5]$`)

// newReader reads the phrase table: entries of a word and one syllable with a
// tone digit for each of its characters, apart by semicolons or line ends.
func newReader() *reader {
	syllables, singles, _ := strings.Cut(readingTable, "\n")
	r := &reader{phrases: map[string][]string{}, syllables: strings.Fields(syllables), singles: singles}
	for entry := range strings.FieldsFuncSeq(phraseTable, func(c rune) bool { return c == ';' || c == '\n' }) {
		if f := strings.Fields(entry); len(f) > 0 && !strings.HasPrefix(f[0], "//") {
			r.phrases[f[0]] = f[1:]
			r.longest = max(r.longest, len(f)-1)
		}
	}
	return r
}

// pinyin returns "ni3 hao3, shi4 jie4." for a text whose figures are in words;
// "" when no character of it can be said.
func (r *reader) pinyin(text string) string {
	rs := []rune(text)
	var words []string
	said := false
	for i := 0; i < len(rs); {
		if mark := asciiMark(rs[i]); mark != "" {
			if n := len(words); n > 0 && asciiMark([]rune(words[n-1])[0]) == "" {
				words = append(words, mark)
			}
			i++
			continue
		}
		if rs[i] == '々' && i > 0 {
			rs[i] = rs[i-1]
		}
		got := r.phraseAt(rs[i:])
		if got == nil {
			if s := r.single(rs, i); s != "" {
				got = []string{s}
			}
		}
		words = append(words, got...)
		said = said || len(got) > 0
		i += max(1, len(got))
	}
	if !said {
		return ""
	}
	changeTones(words)
	return strings.NewReplacer(" ,", ",", " .", ".", " !", "!", " ?", "?", " ;", ";", " :", ":").Replace(
		strings.ReplaceAll(strings.Join(words, " "), "~", ""))
}

func (r *reader) phraseAt(rs []rune) []string {
	for n := min(r.longest, len(rs)); n > 1; n-- {
		if p, ok := r.phrases[string(rs[:n])]; ok {
			return p
		}
	}
	return nil
}

// single reads the character at i; "" when it is none. An open 不 or 一 is
// marked with ~, for its tone depends on what follows.
func (r *reader) single(rs []rune, i int) string {
	switch rs[i] {
	case '不':
		return "bu4~"
	case '一':
		if keepsTone(rs, i) {
			return "yi1"
		}
		return "yi1~"
	}
	if s, ok := commonReadings[rs[i]]; ok {
		return s
	}
	if !isHan(rs[i]) {
		return ""
	}
	s := strings.ReplaceAll(r.reading(rs[i]), "ü", "v")
	if s == "" {
		return ""
	}
	if !isDigit(rune(s[len(s)-1])) {
		s += "5"
	}
	if !syllable.MatchString(s) {
		return ""
	}
	return s
}

// reading returns how the dictionary reads a character first, with the digit of its tone; "" for one that it does not have.
func (r *reader) reading(c rune) string {
	key := string([]byte{byte(c >> 16), byte(c >> 8), byte(c)})
	i := sort.Search(len(r.singles)/readingSize, func(i int) bool { return r.singles[i*readingSize:][:len(key)] >= key })
	if i*readingSize == len(r.singles) || r.singles[i*readingSize:][:len(key)] != key {
		return ""
	}
	at := r.singles[i*readingSize+len(key):]
	return r.syllables[int(at[0])<<8|int(at[1])]
}

// keepsTone reports whether the 一 at i is a figure or an ordinal.
func keepsTone(rs []rune, i int) bool {
	if i > 0 && strings.ContainsRune("第十周期拜初零点一二三四五六七八九壹", rs[i-1]) {
		return true
	}
	return i+1 < len(rs) && strings.ContainsRune("月号日二三四五六七八九零壹", rs[i+1])
}

// changeTones says 不 and 一 as their neighbours want it: bu2 and yi2 before a
// fourth tone, yi4 before the others, yi1 at the end. espeak-ng itself changes
// a third tone before another, but not these.
func changeTones(words []string) {
	for i, w := range words {
		base, open := strings.CutSuffix(w, "~")
		if !open {
			continue
		}
		next := byte(0)
		if i+1 < len(words) {
			n := strings.TrimSuffix(words[i+1], "~")
			next = n[len(n)-1]
		}
		switch {
		case next == '4' || next == '5' && base == "yi1":
			words[i] = base[:len(base)-1] + "2"
		case base == "yi1" && next >= '1' && next <= '3':
			words[i] = "yi4"
		default:
			words[i] = base
		}
	}
}

// asciiMark returns the mark that espeak-ng pauses at, "" for no mark.
func asciiMark(r rune) string {
	switch r {
	case '。', '.', '.' + 0xfee0:
		return "."
	case '，', ',', '、', '(', ')', '《', '》', '（', '）', '–':
		return ","
	case '！', '!':
		return "!"
	case '？', '?':
		return "?"
	case '；', ';':
		return ";"
	case '：', ':':
		return ","
	}
	return ""
}
