package local

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

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
