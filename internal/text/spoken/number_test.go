package spoken

import "testing"

func TestNumber(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "25": 25, " 25 ": 25, "２５": 25, "零": 0, "五": 5, "两": 2, "十": 10, "十五": 15, "二十": 20, "二十五": 25,
		"一百": 100, "一百零三": 103, "一百二": 120, "一百二十": 120, "一百一十五": 115, "三千五": 3500, "两千零二十六": 2026,
		"二零二六": 2026, "一万二": 12000, "十二万三千": 123000, "贰拾伍": 25,
		"one": 1, "twenty five": 25, "twenty-five": 25, "one hundred and five": 105, "two thousand twenty six": 2026, "an": 1,
	} {
		if got, ok := Number(text); !ok || got != want {
			t.Errorf("Number(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", "25x", "五点", "-5", "百", "twenty twenty", "hundred", "five six", "99999999999999", "九九九九九九九九九九九九", "and", "thousand"} {
		if got, ok := Number(text); ok {
			t.Errorf("Number(%q) = %d, want none", text, got)
		}
	}
}

func TestFirstNumber(t *testing.T) {
	for text, want := range map[string]int{"调到三十": 30, "up by 20 percent": 20, "小20": 20, "五个": 5} {
		if got, ok := FirstNumber(text); !ok || got != want {
			t.Errorf("FirstNumber(%q) = %d, %v, want %d", text, got, ok, want)
		}
	}
	if _, ok := FirstNumber("大声"); ok {
		t.Error("a number where there is none")
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"二十五", "一百零三", "12", "twenty five", "亿亿亿亿", "十万亿", "零零零零零零"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, ok := Number(text); ok && (n < 0 || n > 2*maxNumber) {
			t.Errorf("Number(%q) = %d", text, n)
		}
		if n, ok := FirstNumber(text); ok && (n < 0 || n > maxNumber) {
			t.Errorf("FirstNumber(%q) = %d", text, n)
		}
	})
}

func TestLeadingDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"三点一四": "3.14|", "二十五加一": "25|加一", "３点５": "3.5|", "五点": "5|点", "一百零三点零五元": "103.05|元", "七点半": "7|点半",
	} {
		decimal, rest, ok := LeadingDecimal(text)
		if !ok || decimal+"|"+rest != want {
			t.Errorf("%q: %s|%s, %v, want %s", text, decimal, rest, ok, want)
		}
	}
	if _, _, ok := LeadingDecimal("点五"); ok {
		t.Error("a number where there is none")
	}
}
