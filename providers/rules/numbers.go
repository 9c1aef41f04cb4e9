package rules

import (
	"strconv"
	"strings"
)

// englishNumbers replaces spoken numbers, 0 to 100 in words and any in digits,
// by <30>. "two" and "four" right before another number are taken for the "to"
// and "for" that recognisers mistake for them.
func englishNumbers(words []string) []string {
	var out []string
	for i := 0; i < len(words); {
		n, used := englishNumber(words[i:])
		if used == 0 || words[i] == "one" && i > 0 && words[i-1] == "next" {
			out = append(out, words[i])
			i++
			continue
		}
		_, next := englishNumber(words[i+used:])
		switch {
		case next > 0 && words[i] == "two" && used == 1:
			out = append(out, "to")
		case next > 0 && words[i] == "four" && used == 1:
			out = append(out, "for")
		default:
			out = append(out, "<"+strconv.Itoa(n)+">")
		}
		i += used
		if i < len(words) && words[i] == "percent" {
			i++
		}
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
	small, tens := smallNumbers(), tensNumbers()
	switch first := words[0]; {
	case (first == "a" || first == "one") && second == "hundred":
		return 100, 2
	case second == "hundred" && small[first] > 1 && small[first] < 10:
		return small[first] * 100, 2
	case first == "hundred":
		return 100, 1
	case (first == "a" || first == "an") && (second == "minute" || second == "hour" || second == "second"):
		return 1, 1
	case tens[first] > 0:
		if unit, ok := small[second]; ok && unit > 0 && unit < 10 {
			return tens[first] + unit, 2
		}
		return tens[first], 1
	default:
		if n, ok := small[first]; ok {
			return n, 1
		}
		return 0, 0
	}
}

func smallNumbers() map[string]int {
	return map[string]int{
		"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
		"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
		"seventeen": 17, "eighteen": 18, "nineteen": 19,
	}
}

func tensNumbers() map[string]int {
	return map[string]int{
		"twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
	}
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
