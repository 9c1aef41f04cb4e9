package rules

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// The notation of Chinese patterns is that of regexp without its anchors, with
// N for a number (三十, 30, 百分之三十), V for the volume, B for the brightness, A
// for "a little" or nothing, S for the verbs of setting, T for "to" and U for a
// unit of time; W for when and Y for what, X for both. (x) groups as (?:x) does. The
// other slots are those of slots.go.

// chineseExpr turns a pattern into an expression over the whole text.
func chineseExpr(text string) string {
	text = strings.ReplaceAll(text, "(", "(?:")
	text = strings.NewReplacer(append(chineseSlots,
		"N", `((?:百分之)?[0-9零一二两三四五六七八九十百]+(?:%|个百分点)?)`,
		"V", `(?:你的|现在的|设备的|音箱的)?(?:音量|声音|喇叭)`,
		"B", `(?:你的|现在的|设备的)?(?:(?:屏幕|显示屏|屏)的?亮度|亮度|屏幕|显示屏)`,
		"A", `(?:一?点点?儿?|一?些|一下)?`,
		"T", `(?:到|成|为|至|在)`,
		"S", `(?:调整|调节|设置|设定|调|设|开|改|放|弄|变|提|降)`,
		"U", `(?:秒钟?|分钟?|个?小时|个?钟头)`,
		"W", `(?P<when>.{2,30}?)`,
		"X", `(?P<rest>.{1,60})`,
		"Y", `(?P<what>.{1,40}?)`,
	)...).Replace(text)
	return `^(?:` + text + `)$`
}

// chineseForms returns the ways to read a text: as it is, and without the words
// around the request, taken off one after the other. name is the assistant's,
// beside the one that it has by itself.
func (k *phrasebook) chineseForms(said, name string) []string {
	text := chineseSigns(withoutOperators(said, "加", "减", "乘", "除以"))
	text = strings.NewReplacer("一个半小时", "90分钟", "两个半小时", "150分钟", "半个小时", "30分钟", "半小时", "30分钟",
		"半个钟头", "30分钟", "一刻钟", "15分钟", "一半", "百分之50", "俩", "两", "仨", "三个", "提醒我们", "提醒我", "叫我们", "叫我", "喊我们", "喊我", "告诉我们", "告诉我").Replace(text)
	names := []string{assistantName()}
	if own := chineseSigns(name); own != "" {
		names = append(names, own)
	}
	forms := append([]string{text}, trimAll(text, strings.CutSuffix, slices.Concat(k.After, names))...)
	forms = append(forms, trimAll(forms[len(forms)-1], strings.CutPrefix, slices.Concat(k.Before, names))...)
	return k.with(func(base *phrasebook) []string { return base.chineseForms(said, name) }, forms)
}

// chineseSigns lower-cases a text and drops its signs, but for those that are
// part of a number: 3.5 is not 35, 10:30 is not 1030, and 音量-10 is not 音量10.
func chineseSigns(text string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' { // the wide forms of ASCII
			return r - '！' + '!'
		}
		return r
	}, text))
	digit := func(i int) bool { return i >= 0 && i < len(runes) && runes[i] >= '0' && runes[i] <= '9' }
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == '%' || (r == '.' || r == ':') && digit(i-1) && digit(i+1):
			b.WriteRune(r)
		case r == '+' && digit(i+1):
			b.WriteRune('加')
		case (r == '-' || r == '−') && digit(i+1) && !digit(i-1):
			b.WriteRune('减')
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// trimAll cuts the words off as long as one fits and something is left, and
// gives what is left after each cut: 小智你好 is 你好 before it is 好.
func trimAll(text string, cut func(s, word string) (string, bool), words []string) []string {
	var forms []string
	for changed := true; changed; {
		changed = false
		for _, w := range words {
			if rest, ok := cut(text, w); ok && rest != "" {
				text, changed = rest, true
				forms = append(forms, text)
			}
		}
	}
	return forms
}

// chineseUnit returns the unit of time that a text names, or 0.
func chineseUnit(text string) time.Duration {
	switch {
	case containsAny(text, []string{"小时", "钟头"}):
		return time.Hour
	case strings.Contains(text, "分"):
		return time.Minute
	case strings.Contains(text, "秒"):
		return time.Second
	}
	return 0
}

// chineseNumber reads 三十五, 百, 两百, 一百零五 or 35.
func chineseNumber(text string) (int, bool) {
	if n, ok := digits(text); ok {
		return n, true
	}
	total, digit, seen := 0, none, false
	for _, r := range text {
		unit := map[rune]int{'十': 10, '百': 100}[r]
		value := strings.IndexRune("零一二三四五六七八九", r) / len("零")
		if r == '两' {
			value = 2
		}
		switch {
		case unit > 0 && digit == none && total%100 == 0:
			total, seen = total+unit, true
		case unit > 0 && digit > 0:
			total, digit, seen = total+digit*unit, none, true
		case unit > 0 || !strings.ContainsRune("零一二两三四五六七八九", r):
			return 0, false
		case digit > 0:
			return 0, false
		default:
			digit, seen = value, true
		}
	}
	return total + max(digit, 0), seen
}
