package local

import "strings"

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
