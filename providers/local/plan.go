package local

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	en = "en"
	zh = "zh"
)

const (
	maxHan   = 60  // syllables of one unit: about 13 s of speech
	maxLatin = 120 // letters of one unit: about 8 s of speech, 120 ms of flite

	commaPause = 120 * time.Millisecond
	stopPause  = 250 * time.Millisecond
)

// unit is a short stretch of one language, ready for its engine: ASCII words for
// English, pinyin with tone digits for Chinese. pause is the silence after it.
type unit struct {
	lang  string
	text  string
	pause time.Duration
}

// plan returns the units of a text, none if there is nothing to say, and the first
// sign of a script that is neither Chinese nor Latin, "" if there is none.
func (r *reader) plan(text, lang string) (units []unit, foreign string) {
	lang = mainLanguage(text, lang)
	text, foreign = fold(text, lang)
	for _, run := range split(text, lang) {
		if run.lang == zh {
			units = append(units, r.chinese(run.text)...)
		} else {
			units = append(units, latinUnits(run.text)...)
		}
	}
	return units, foreign
}

// mainLanguage says in which language figures and signs are read.
func mainLanguage(text, asked string) string {
	han, latin := 0, 0
	for _, r := range text {
		switch {
		case isHan(r):
			han++
		case isLatin(r):
			latin++
		}
	}
	switch {
	case han == 0 && latin == 0:
		if asked == zh {
			return zh
		}
		return en
	case han == 0:
		return en
	case asked == en && latin > 4*han:
		return en
	}
	return zh
}

// split cuts a text into runs by language, numbers already put into words.
func split(text, lang string) []unit {
	if lang == zh {
		return splitChinese(chineseWords(text))
	}
	var runs []unit
	for _, u := range splitEnglish(text) {
		if u.lang == zh {
			runs = append(runs, splitChinese(chineseWords(u.text))...)
			continue
		}
		u.text = englishWords(u.text)
		runs = append(runs, u)
	}
	return runs
}

// splitChinese takes Latin words out of Chinese text. What stands between two
// Latin words and is not Chinese belongs to them.
func splitChinese(text string) []unit {
	var runs []unit
	rs := []rune(text)
	for i := 0; i < len(rs); {
		j := i
		if !isLatin(rs[i]) {
			for j < len(rs) && !isLatin(rs[j]) {
				j++
			}
			runs = append(runs, unit{lang: zh, text: string(rs[i:j])})
			i = j
			continue
		}
		end := i
		for j < len(rs) && (isLatin(rs[j]) || strings.ContainsRune(" '-.&_/,", rs[j])) {
			if isLatin(rs[j]) {
				end = j + 1
			}
			j++
		}
		runs = append(runs, unit{lang: en, text: spellLetters(string(rs[i:end]))})
		i = end
	}
	return runs
}

// splitEnglish takes stretches with Chinese characters, and the figures that
// touch them, out of English text.
func splitEnglish(text string) []unit {
	var runs []unit
	at := 0
	for _, m := range hanStretch.FindAllStringIndex(text, -1) {
		if m[0] > at {
			runs = append(runs, unit{lang: en, text: text[at:m[0]]})
		}
		runs = append(runs, unit{lang: zh, text: text[m[0]:m[1]]})
		at = m[1]
	}
	if at < len(text) {
		runs = append(runs, unit{lang: en, text: text[at:]})
	}
	return runs
}

// chinese makes units of Chinese words. Marks become pauses; long stretches are
// cut at the strongest mark in reach, else where the unit is full.
func (r *reader) chinese(text string) []unit {
	var units []unit
	for _, c := range clauses(text, maxHan, isHan) {
		if p := r.pinyin(c.text); p != "" {
			c.lang, c.text = zh, p
			units = append(units, c)
		} else if n := len(units); n > 0 {
			units[n-1].pause = max(units[n-1].pause, c.pause)
		}
	}
	return units
}

// latinUnits makes units of English words.
func latinUnits(text string) []unit {
	var units []unit
	for _, c := range clauses(text, maxLatin, func(r rune) bool { return r > ' ' }) {
		if !strings.ContainsFunc(c.text, func(r rune) bool { return isLatin(r) || isDigit(r) }) {
			continue
		}
		c.lang, c.text = en, strings.TrimSpace(c.text)
		units = append(units, c)
	}
	return units
}

// clauses cuts text so that no piece holds more than limit signs that count.
// It cuts after the last full stop in reach, else after the last comma or
// space of the second half, else where the limit is.
func clauses(text string, limit int, counts func(rune) bool) []unit {
	var units []unit
	rs := []rune(text)
	for len(rs) > 0 {
		n, end := 0, 0
		stop, comma, space := 0, 0, 0
		for end < len(rs) && n < limit {
			r := rs[end]
			end++
			if counts(r) {
				n++
			}
			switch {
			case strings.ContainsRune("。！？；!?;", r), r == '.' && (end == len(rs) || rs[end] == ' '):
				stop = end
			case strings.ContainsRune("，、：,:", r):
				comma = end
			case unicode.IsSpace(r):
				space = end
			}
		}
		if end < len(rs) {
			for _, cut := range []int{stop, comma, space} {
				if cut > end/3 {
					end = cut
					break
				}
			}
		}
		units = append(units, unit{text: string(rs[:end]), pause: pauseAfter(rs[:end])})
		rs = rs[end:]
	}
	return units
}

func pauseAfter(rs []rune) time.Duration {
	for _, r := range slices.Backward(rs) {
		switch {
		case strings.ContainsRune("。！？；!?;.", r):
			return stopPause
		case strings.ContainsRune("，、：,:", r):
			return commaPause
		case isHan(r) || isLatin(r) || isDigit(r):
			return 0
		}
	}
	return 0
}

// letters are the Latin letters with marks that do not come apart in Unicode.
var letters = strings.NewReplacer("ø", "o", "Ø", "O", "ł", "l", "Ł", "L", "đ", "d", "Đ", "D", "ð", "d", "Ð", "D", "ħ", "h", "Ħ", "H",
	"ı", "i", "ß", "ss", "æ", "ae", "Æ", "AE", "œ", "oe", "Œ", "OE", "þ", "th", "Þ", "Th")

// alike folds signs that look alike to one of them.
var alike = strings.NewReplacer(
	"’", "'", "‘", "'", "ʼ", "'", "“", `"`, "”", `"`, "「", `"`, "」", `"`, "『", `"`, "』", `"`,
	"‐", "-", "‑", "-", "‒", "-", "−", "-", "〜", "~", "∼", "~", "﹣", "-",
	"……", "。", "…", "。", "——", "，", "—", "，", "㎡", "m²", "㎏", "kg", "㎞", "km", "㎝", "cm", "㎜", "mm", "℉", "°F", "℃", "°C", "〇", "零", "\u200b", "",
	"①", "1, ", "②", "2, ", "③", "3, ", "④", "4, ", "⑤", "5, ", "⑥", "6, ", "⑦", "7, ", "⑧", "8, ", "⑨", "9, ", "⑩", "10, ",
)

// raised are the signs that would change a figure that they stand at, were they
// written as figures: 5² is not 52 and 3½ is not 31/2. So they become words.
var raised = map[string]*strings.Replacer{
	zh: strings.NewReplacer("km²", "平方公里", "cm²", "平方厘米", "m²", "平方米", "cm³", "立方厘米", "m³", "立方米", "²", "的平方", "³", "的立方",
		"½", "又二分之一", "¼", "又四分之一", "¾", "又四分之三", "π", "派"),
	en: strings.NewReplacer("km²", " square kilometers", "cm²", " square centimeters", "m²", " square meters", "cm³", " cubic centimeters",
		"m³", " cubic meters", "²", " squared", "³", " cubed", "½", " and a half", "¼", " and a quarter", "¾", " and three quarters", "π", " pi "),
}

// loneParts are fractions with nothing before them.
var loneParts = regexp.MustCompile(`(^|[^\d½¼¾])([½¼¾])`)

// foldRaised puts raised signs into words.
func foldRaised(text, lang string) string {
	text = loneParts.ReplaceAllStringFunc(text, func(m string) string {
		return strings.NewReplacer("½", "1/2", "¼", "1/4", "¾", "3/4").Replace(m)
	})
	return raised[lang].Replace(text)
}

var (
	links = regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s，。！？；、（）《》"'<>]+`)
	mails = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// fold brings a text to few kinds of signs: full-width digits, letters and
// brackets to ASCII, accents away, control signs to spaces, links and mail
// addresses to a word. Chinese punctuation stays, for it never is a decimal
// point. It also gives the first letter of a script that we cannot read.
func fold(text, lang string) (folded, foreign string) {
	link, mail := " link ", " email address "
	if lang == zh {
		link, mail = "链接", "邮箱地址"
	}
	text = foldRaised(alike.Replace(strings.ToValidUTF8(text, " ")), lang)
	text = links.ReplaceAllLiteralString(text, link)
	text = mails.ReplaceAllLiteralString(text, mail)
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= '０' && r <= '９', r >= 'Ａ' && r <= 'Ｚ', r >= 'ａ' && r <= 'ｚ',
			strings.ContainsRune("％＋－＝＃＆＠．／～＄（）＊＜＞＂＇", r):
			b.WriteRune(r - 0xfee0)
		case r == '￥':
			b.WriteRune('¥')
		case unicode.IsSpace(r) || unicode.IsControl(r):
			b.WriteByte(' ')
		case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Mn, r):
		case r > unicode.MaxASCII && unicode.Is(unicode.Latin, r):
			plain, _ := utf8.DecodeRune(norm.NFD.Bytes([]byte(string(r)))) // without its marks
			b.WriteRune(plain)
		default:
			b.WriteRune(r)
		}
	}
	folded = letters.Replace(b.String())
	for _, r := range folded {
		if unicode.IsLetter(r) && r > unicode.MaxASCII && !isHan(r) && r != '々' && r != '〇' && !strings.ContainsRune("μµΩ", r) {
			return folded, string(r)
		}
	}
	return folded, ""
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) && r != '々' }

func isLatin(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }
