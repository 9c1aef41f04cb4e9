package rules

import (
	"slices"
	"strconv"
	"strings"
)

// englishNumbers replaces spoken numbers, 0 to 100 in words and any in digits,
// by <30>, and thirty percent by <30%>. "two" and "four" right before another number are taken for the "to"
// and "for" that recognisers mistake for them.
func englishNumbers(words []string) []string {
	var out []string
	for i := 0; i < len(words); {
		n, used := englishNumber(words[i:])
		if used == 0 || words[i] == "one" && i > 0 && slices.Contains([]string{"next", "this", "that", "another"}, words[i-1]) {
			out = append(out, words[i])
			i++
			continue
		}
		_, next := englishNumber(words[i+used:])
		if meant := map[string]string{"two": "to", "four": "for"}[words[i]]; meant != "" && next > 0 && used == 1 {
			out = append(out, meant)
			i++
			continue
		}
		i += used
		share := ""
		if i < len(words) && words[i] == "percent" {
			share = "%"
			i++
		}
		out = append(out, "<"+strconv.Itoa(n)+share+">")
	}
	return out
}

// englishNumber reads a number from the start of words and says how many words
// it took, 0 for none.
func englishNumber(words []string) (n, used int) {
	if len(words) == 0 {
		return 0, 0
	}
	if n, ok := digits(words[0]); ok {
		return n, 1
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	n, isSmall := smallNumber(words[0])
	unit, isUnit := smallNumber(second)
	isUnit = isUnit && unit > 0 && unit < 10
	switch first := words[0]; {
	case first == "a" && second == "hundred":
		return 100, 2
	case second == "hundred" && isSmall && n > 0 && n < 10:
		return n * 100, 2
	case first == "hundred":
		return 100, 1
	case (first == "a" || first == "an") && (second == "minute" || second == "hour" || second == "second"):
		return 1, 1
	case tens(first) > 0 && isUnit:
		return tens(first) + unit, 2
	case tens(first) > 0:
		return tens(first), 1
	case isSmall:
		return n, 1
	}
	return 0, 0
}

// smallNumber reads a word for 0 to 19.
func smallNumber(word string) (int, bool) {
	n := slices.Index(strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "+
		"fifteen sixteen seventeen eighteen nineteen"), word)
	return n, n >= 0
}

// tens reads a word for 20, 30 … 90, or gives 0.
func tens(word string) int {
	return 10 * slices.Index(strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety"), word)
}

// digits reads a number of at most five digits.
func digits(text string) (int, bool) {
	if len(text) == 0 || len(text) > 5 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
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
