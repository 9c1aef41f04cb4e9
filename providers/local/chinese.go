package local

import (
	"regexp"
	"strconv"
	"strings"
)

const figure = `\d+(?:,\d{3})*(?:\.\d+)*`

// rewrite is one rule: what is matched, and the words for its groups.
type rewrite struct {
	pattern *regexp.Regexp
	words   func(m []string) string
}

func rule(pattern string, words func(m []string) string) rewrite {
	return rewrite{regexp.MustCompile(pattern), words}
}

func (r rewrite) apply(text string) string {
	if !r.pattern.MatchString(text) {
		return text
	}
	var b strings.Builder
	at := 0
	for _, ix := range r.pattern.FindAllStringSubmatchIndex(text, -1) {
		m := make([]string, len(ix)/2)
		for i := range m {
			if ix[2*i] >= 0 {
				m[i] = text[ix[2*i]:ix[2*i+1]]
			}
		}
		b.WriteString(text[at:ix[0]] + r.words(m))
		at = ix[1]
	}
	return b.String() + text[at:]
}

// chineseUnits are the signs of measure after a figure.
var chineseUnits = map[string]string{
	"km/h": "公里每小时", "m/s": "米每秒", "km": "公里", "cm": "厘米", "mm": "毫米", "m": "米", "kg": "公斤", "g": "克",
	"mg": "毫克", "ml": "毫升", "mL": "毫升", "L": "升", "GB": "吉字节", "MB": "兆", "KB": "千字节", "TB": "太字节", "kWh": "度电",
	"kHz": "千赫兹", "MHz": "兆赫兹", "GHz": "吉赫兹", "Hz": "赫兹", "kW": "千瓦", "W": "瓦", "V": "伏", "mA": "毫安", "mAh": "毫安时",
	"dB": "分贝", "ms": "毫秒", "s": "秒", "min": "分钟", "h": "小时", "ppm": "百万分之一", "μm": "微米", "µm": "微米",
}

const measures = `个|点|两|位|只|条|张|本|块|元|天|年|周|个月|小时|分钟|秒|次|遍|岁|人|米|公里|千米|厘米|公斤|斤|克|升|种|件|台|盏|首|部|辆|架|` +
	`杯|瓶|碗|家|句|段|页|层|双|对|头|颗|步|倍|条|份|场|把|套|座|间|盒|包|根|片|题|字|名|集|千|百|万|亿|美元|摄氏度|度|刻钟|卡|章|幅|群|类|项|排`

// chineseRules run in this order; what a rule has put into words, later rules do not see.
var chineseRules = []rewrite{
	rule(`\b(\d{1,3}(?:\.\d{1,3}){3})(?::(\d{1,5}))?`, sayAddress),
	rule(`(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(\D|$)`, sayDate),
	rule(`(\d{4})(?:[-~–](\d{4}))?年`, func(m []string) string {
		if m[2] != "" {
			return spell(m[1], singly) + "到" + spell(m[2], singly) + "年"
		}
		return spell(m[1], singly) + "年"
	}),
	rule(`(\d{1,2}[:：]\d{2}(?:[:：]\d{2})?)(?: ?([AaPp])\.?[Mm]\.?)?(?: ?[-~–至到] ?(\d{1,2}[:：]\d{2}))?`, sayTime),
	rule(`(\d+)[:：](\d+)`, func(m []string) string { return chineseNumber(m[1]) + "比" + chineseNumber(m[2]) }),
	rule(`\+?(?:86[- ]?)?\b(1[3-9]\d)[- ]?(\d{4})[- ]?(\d{4})\b`, func(m []string) string { return spell(m[0], byPhone) }),
	rule(`\b(?:0\d{2,3}|400|800)-\d{3,4}-?\d{3,4}\b`, func(m []string) string { return spell(m[0], byPhone) }),
	rule(`((?:拨打|拨|打|致电|热线|电话|号码|手机)(?:是|为|：|:| )*)(\d{3,})`, func(m []string) string { return m[1] + spell(m[2], byPhone) }),
	rule(`\b(\d{3,5})(报警|火警|急救|热线|电话|客服)`, func(m []string) string { return spell(m[1], byPhone) + m[2] }),
	rule(`((?:验证码|激活码|邀请码|密码|口令|邮编|邮政编码|编号|代码|尾号|卡号|账号|工号|学号|订单号|QQ号?)(?:是|为|：|:| )*)(\d{3,})`,
		func(m []string) string { return m[1] + spell(m[2], singly) }),
	rule(`\b(\d{3,4})(房间|号房|室)`, func(m []string) string { return spell(m[1], singly) + m[2] }),
	rule(`(-?)([¥$€£]) ?(`+figure+`)([万亿]?)`, func(m []string) string {
		coin := map[string]string{"¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}[m[2]]
		return minus(m[1]) + sayMoney(m[3]+m[4]+coin)
	}),
	rule(`(-?)(`+figure+`)([%‰])?(?: ?[-~–至到] ?(-?)(`+figure+`))?([%‰])`, sayPercent),
	rule(`(-?)(`+figure+`)(?:°[CF]?)?(?: ?[-~–至到] ?(-?)(`+figure+`))? ?°([CF]?)`, sayDegrees),
	rule(`(^|[^A-Za-z\d])(-?`+figure+`)(?:[-~–至到](`+figure+`))? ?(km/h|m/s|kWh|km|cm|mm|kg|mg|ml|mL|GB|MB|KB|TB|kHz|MHz|GHz|Hz|kW|mAh|mA|dB|ms|min|ppm|μm|µm|m|g|L|W|V|s|h)([^A-Za-z]|$)`, sayMeasure),
	rule(`(\d) ?[*×] ?(\d)`, func(m []string) string { return m[1] + "乘以" + m[2] }),
	rule(`(\d) ?- ?(\d+(?:\.\d+)?) ?=`, func(m []string) string { return m[1] + "减" + m[2] + "=" }),
	rule(`(\d) ?\^ ?(\d+)`, func(m []string) string { return m[1] + "的" + m[2] + "次方" }),
	rule(`(\d) ?([<>]) ?(-?\d)`, func(m []string) string { return m[1] + map[string]string{"<": "小于", ">": "大于"}[m[2]] + m[3] }),
	rule(`√ ?(\d)`, func(m []string) string { return "根号" + m[1] }),
	rule(`((?:周|星期|礼拜)[一二三四五六日天])~`, func(m []string) string { return m[1] + "到" }),
	rule(`(\d{1,3})/(\d{1,3})`, func(m []string) string { return chineseNumber(m[2]) + "分之" + chineseNumber(m[1]) }),
	rule(`第(\d+)`, func(m []string) string { return "第" + ordinal(m[1]) }),
	rule(`(\d+)(月|号|日|楼|路|班)`, func(m []string) string { return ordinal(m[1]) + m[2] }),
	rule(`(`+figure+`) ?[-~–] ?(`+figure+`)`, func(m []string) string { return m[1] + "到" + m[2] }),
	rule(`([A-Za-z])-?(\d{3,})`, func(m []string) string { return m[1] + spell(m[2], singly) }),
	rule(`([A-Za-z])-?([12])([^\d.]|\.\D|\.?$)`, func(m []string) string { return m[1] + spell(m[2], singly) + m[3] }),
	rule(`([A-Za-z])-(\d)`, func(m []string) string { return m[1] + m[2] }),
	rule(`(^|[^\dA-Za-z])-(\d)`, func(m []string) string { return m[1] + "负" + m[2] }),
	rule(`(^|[^\d.])2(多)?(`+measures+`)`, func(m []string) string { return m[1] + "两" + m[2] + classifier(m[3]) }),
	rule(`(`+figure+`)(只)`, func(m []string) string { return chineseNumber(m[1]) + "隻" }),
	rule(`~(-?\d)`, func(m []string) string { return "到" + m[1] }),
	rule(`~`, func([]string) string { return "，" }), // 你好~ only draws the word out
	rule(`\d{9,}`, func(m []string) string {
		if strings.HasSuffix(m[0], "0000") { // a round number is an amount, any other a code
			return chineseNumber(m[0])
		}
		return spell(m[0], singly)
	}),
	rule(figure, func(m []string) string { return chineseNumber(m[0]) }),
	rule(`([一二两三四五六七八九十百几])只`, func(m []string) string { return m[1] + "隻" }),
}

// chineseSigns are said between the words.
var chineseSigns = strings.NewReplacer("≥", "大于等于", "≤", "小于等于", "≈", "约等于", "=", "等于", "+", "加", "×", "乘以", "÷", "除以",
	"±", "正负", "°", "度", "%", "百分之", "#", "井", "¥", "元", "Ω", "欧姆", "C++", "C加加", "&", "和")

// chineseWords puts figures and signs of a Chinese text into words.
func chineseWords(text string) string {
	for _, r := range chineseRules {
		text = r.apply(text)
	}
	return chineseSigns.Replace(text)
}

func minus(sign string) string {
	if sign == "-" {
		return "负"
	}
	return ""
}

// ordinal says a number that counts places: 二, never 两, and a 一 that keeps its tone.
func ordinal(s string) string {
	switch s {
	case "1":
		return "壹"
	case "2":
		return "二"
	}
	return chineseNumber(s)
}

// amount writes a number that counts something: 两 for a lone 2.
func amount(s string) string {
	if s == "2" {
		return "两"
	}
	return chineseNumber(s)
}

func classifier(s string) string {
	if s == "只" {
		return "隻"
	}
	return s
}

// sayAddress says the figures of an IP address one by one, and those of its port.
func sayAddress(m []string) string {
	said := strings.Split(m[1], ".")
	for i := range said {
		said[i] = spell(said[i], singly)
	}
	text := strings.Join(said, "点")
	if m[2] != "" {
		text += "，端口" + spell(m[2], singly)
	}
	return text
}

func sayDate(m []string) string {
	month, _ := strconv.Atoi(m[2])
	day, _ := strconv.Atoi(m[3])
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return spell(m[1], singly) + "，" + spell(m[2], singly) + "，" + spell(m[3], singly) + m[4]
	}
	return spell(m[1], singly) + "年" + ordinal(strconv.Itoa(month)) + "月" + ordinal(strconv.Itoa(day)) + "日" + m[4]
}

func sayTime(m []string) string {
	from, ok := clockTime(m[1], m[2])
	if !ok {
		return m[0]
	}
	if m[3] == "" {
		return from
	}
	to, ok := clockTime(m[3], "")
	if !ok {
		return m[0]
	}
	return from + "到" + to
}

// clockTime says 8:30 or 8:30:15; half is a or p of am and pm.
func clockTime(s, half string) (string, bool) {
	f := strings.Split(strings.ReplaceAll(s, "：", ":"), ":")
	hour, _ := strconv.Atoi(f[0])
	minute, _ := strconv.Atoi(f[1])
	if hour > 24 || minute > 59 {
		return "", false
	}
	said := amount(strconv.Itoa(hour)) + "点"
	switch half {
	case "a", "A":
		said = "上午" + said
	case "p", "P":
		said = "下午" + said
	}
	switch {
	case minute == 30 && len(f) == 2:
		said += "半"
	case minute == 0 && len(f) == 2:
	case minute < 10:
		said += "零" + ordinal(strconv.Itoa(minute)) + "分"
	default:
		said += chineseInteger(strconv.Itoa(minute)) + "分"
	}
	if len(f) == 3 {
		second, _ := strconv.Atoi(f[2])
		said += ordinal(strconv.Itoa(second)) + "秒"
	}
	return said, true
}

// sayMoney says 3.50元 as 三点五元.
func sayMoney(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return !isDigit(r) && r != '.' && r != ',' })
	n, rest := s[:i], s[i:]
	if strings.Contains(n, ".") {
		n = strings.TrimSuffix(strings.TrimRight(n, "0"), ".")
	}
	return amount(n) + rest
}

func sayPercent(m []string) string {
	of := "百分之"
	if m[6] == "‰" {
		of = "千分之"
	}
	said := minus(m[1]) + of + chineseNumber(m[2])
	if m[5] != "" {
		said += "到" + minus(m[4]) + of + chineseNumber(m[5])
	}
	return said
}

func sayDegrees(m []string) string {
	below := func(sign string) string {
		if sign != "-" {
			return ""
		}
		if m[5] == "" {
			return "负"
		}
		return "零下"
	}
	said := below(m[1]) + amount(m[2])
	if m[4] != "" {
		said += "到" + below(m[3]) + amount(m[4])
	}
	switch m[5] {
	case "C":
		return said + "摄氏度"
	case "F":
		return said + "华氏度"
	}
	return said + "度"
}

func sayMeasure(m []string) string {
	n, negative := strings.CutPrefix(m[2], "-")
	said := m[1]
	if negative {
		said += "负"
	}
	said += amount(n)
	if m[3] != "" {
		said += "到" + amount(m[3])
	}
	return said + chineseUnits[m[4]] + m[5]
}

// capitals of more than one letter that are said as a word.
var spokenCapitals = map[string]bool{"OK": true, "NASA": true, "WIFI": true, "SIM": true, "RAM": true, "ROM": true, "HELLO": true, "NO": true, "YES": true}

var latinWord = regexp.MustCompile(`[A-Za-z']+`)

// spellLetters sets the letters of abbreviations apart, so that LED is said as
// letters: in Chinese text, capitals are never there for emphasis.
func spellLetters(text string) string {
	return latinWord.ReplaceAllStringFunc(spellKnown(text), func(w string) string {
		if len(w) < 2 || len(w) > 6 || w != strings.ToUpper(w) || spokenCapitals[w] {
			return w
		}
		return strings.Join(strings.Split(w, ""), " ")
	})
}

// The digits as they are said one by one. 壹 is read as 一, but never changes
// its tone with its neighbours, which 一 does except in figures.
const (
	singly  = "零壹二三四五六七八九"
	byPhone = "零幺二三四五六七八九"
	inWords = "零一二三四五六七八九"
)

// spell says digits one by one in the words of the table; other signs vanish.
func spell(digits, table string) string {
	words := []rune(table)
	var b strings.Builder
	for _, r := range digits {
		if isDigit(r) {
			b.WriteRune(words[r-'0'])
		}
	}
	return b.String()
}

// chineseNumber says a number such as 1,234.50. With more than 16 digits, or
// with a leading zero, it is said digit by digit.
func chineseNumber(s string) string {
	s = strings.ReplaceAll(s, ",", "")
	whole, part, decimal := strings.Cut(s, ".")
	said := chineseInteger(whole)
	if !decimal {
		return said
	}
	if whole == "1" {
		said = "壹"
	}
	if whole == "2" {
		said = "二"
	}
	for rest := range strings.SplitSeq(part, ".") { // 1.2.3 is a version
		said += "点" + spell(rest, singly)
	}
	return said
}

func chineseInteger(s string) string {
	if len(s) > 16 || len(s) > 1 && s[0] == '0' {
		return spell(s, singly)
	}
	if strings.Trim(s, "0") == "" {
		return "零"
	}
	var b strings.Builder
	gap := false // a zero is owed before the next digit
	groups := []string{"", "万", "亿", "万亿"}
	for len(s) > 0 {
		n := (len(s)-1)/4 + 1 // groups left
		cut := len(s) - 4*(n-1)
		group, rest := s[:cut], s[cut:]
		said := fourDigits(group, b.Len() == 0, rest == "")
		if said != "" {
			if b.Len() > 0 && (gap || group[0] == '0') {
				b.WriteString("零")
			}
			b.WriteString(said + groups[n-1])
		}
		gap = said == "" || group[len(group)-1] == '0' && rest != "" && rest[0] == '0'
		s = rest
	}
	return b.String()
}

// fourDigits says up to four digits without a leading zero. first: nothing was
// said before; last: no group follows.
func fourDigits(s string, first, last bool) string {
	units := []string{"", "十", "百", "千"}
	words := []rune(inWords)
	var b strings.Builder
	gap := false
	for i, r := range s {
		unit, d := len(s)-1-i, int(r-'0')
		if d == 0 {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteString("零")
			gap = false
		}
		start := first && b.Len() == 0
		switch {
		case d == 1 && unit == 1 && start: // 十五, not 一十五
		case d == 2 && start && (unit >= 2 || unit == 0 && !last): // 两百, 两万
			b.WriteString("两")
		case d == 1 && unit == 0 && (!start || len(s) > 1): // 二十一 keeps its tone
			b.WriteString("壹")
		default:
			b.WriteRune(words[d])
		}
		b.WriteString(units[unit])
	}
	return b.String()
}
