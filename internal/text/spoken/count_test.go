package spoken

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// inChinese writes a number as it is said: 10305 is 一万零三百零五.
func inChinese(n int) string {
	if n == 0 {
		return "零"
	}
	text, gap := "", false
	for place := 8; place >= 0; place -= 4 { // 亿, 万, ones
		section := n
		for range place {
			section /= 10
		}
		section %= 10000
		if section == 0 {
			gap = text != ""
			continue
		}
		if text != "" && (gap || section < 1000) {
			text += "零"
		}
		text += sectionInChinese(section) + map[int]string{8: "亿", 4: "万"}[place]
		gap = false
	}
	if strings.HasPrefix(text, "一十") {
		return strings.TrimPrefix(text, "一")
	}
	return text
}

func sectionInChinese(n int) string {
	digits, text, gap := []rune("零一二三四五六七八九"), "", false
	for i, unit := range []int{1000, 100, 10, 1} {
		d := n / unit % 10
		if d == 0 {
			gap = text != ""
			continue
		}
		if gap {
			text += "零"
		}
		text, gap = text+string(digits[d])+[]string{"千", "百", "十", ""}[i], false
	}
	return text
}

func inEnglish(n int) string {
	small := strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens := strings.Fields("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
	join := func(head, link string, rest int) string {
		if rest == 0 {
			return head
		}
		return head + link + inEnglish(rest)
	}
	switch {
	case n < 20:
		return small[n]
	case n < 100:
		return join(tens[n/10], "-", n%10)
	case n < 1000:
		return join(small[n/100]+" hundred", " and ", n%100)
	}
	return join(inEnglish(n/1000)+" thousand", " ", n%1000)
}

// TestCount: every number that is written in words comes back, and as the
// beginning of a text it leaves what follows alone.
func TestCount(t *testing.T) {
	numbers := make([]int, 0, 40_000)
	for n := range 20_000 {
		numbers = append(numbers, n)
	}
	source := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		numbers = append(numbers, source.IntN(maxNumber))
	}
	for _, n := range numbers {
		text := inChinese(n)
		if got, ok := Number(text); !ok || got != n {
			t.Fatalf("Number(%q) = %d, %v, want %d", text, got, ok, n)
		}
		if got, rest, ok := leadingNumber(text + "分钟"); !ok || got != n || rest != "分钟" {
			t.Fatalf("%q分钟 begins with %d and goes on with %q", text, got, rest)
		}
		if n >= 100_000 {
			continue
		}
		text = inEnglish(n)
		if got, ok := Number(text); !ok || got != n {
			t.Fatalf("Number(%q) = %d, %v, want %d", text, got, ok, n)
		}
		if got, rest, ok := leadingWords(text + " minutes"); !ok || got != n || rest != " minutes" {
			t.Fatalf("%q minutes begins with %d and goes on with %q", text, got, rest)
		}
	}
}

func TestNoNumber(t *testing.T) {
	for _, text := range []string{"twenty and", "twenty a", "and five", "one two", "hundred and one", "twenty eleven", "a a"} {
		if got, ok := Number(text); ok {
			t.Errorf("Number(%q) = %d, want none", text, got)
		}
	}
}
