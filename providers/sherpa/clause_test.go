package sherpa

import (
	"slices"
	"strings"
	"testing"
)

func TestClauses(t *testing.T) {
	t.Parallel()
	for words, want := range map[string][]string{
		"好的，马上就来。":                                       {"好的，马上就来。"},
		"今天的天气很好，明天也一样。":                                 {"今天的天气很好，", "明天也一样。"},
		"On Monday, it rains; then it is 1,000 degrees.": {"On Monday, it rains;", "then it is 1,000 degrees."},
		"It was a long day, and it rained.":              {"It was a long day,", "and it rained."},
		"…":                                              nil,
		"a\x00b\nc":                                      {"a b c"},
		"一共三点一四个，也就是3.14个。":                              {"一共三点一四个，", "也就是3.14个。"},
	} {
		if got := clauses(words); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	for _, part := range clauses(strings.Repeat("字", 500)) {
		if n := len([]rune(part)); n > maxClause/3 {
			t.Errorf("a clause of %d characters", n)
		}
	}
}

func FuzzClauses(f *testing.F) {
	f.Add("今天，a, b. 3.14")
	f.Fuzz(func(t *testing.T, words string) {
		letters := func(s string) string {
			return strings.Map(func(r rune) rune {
				if strings.ContainsRune("abc今天", r) {
					return r
				}
				return -1
			}, s)
		}
		if got := strings.Join(clauses(words), " "); letters(got) != letters(words) {
			t.Errorf("%q became %q", words, got)
		}
	})
}

func TestTidy(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{" 昨天是 MONDAY ", "昨天是 monday"}, {"MONDAY Is", "MONDAY Is"}, {"", ""}} {
		if got := tidy(c[0], true); got != c[1] {
			t.Errorf("%q: %q", c[0], got)
		}
	}
	if got := tidy("用 AI", false); got != "用 AI" {
		t.Errorf("capitals of a model that has both: %q", got)
	}
	if got := []string{tongue(""), tongue("好"), tongue("monday")}; !slices.Equal(got, []string{"", "zh", "en"}) {
		t.Errorf("languages %q", got)
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	known := []string{"auto", "zh", "en", "yue"}
	for tag, want := range map[string]string{"": "", "zh-CN": "zh", "cmn-Hans-CN": "zh", "zh-HK": "yue", "yue": "yue", "EN": "en"} {
		if got, err := hint(tag, known); err != nil || got != want {
			t.Errorf("%q: %q, %v", tag, got, err)
		}
	}
	if got, err := hint("fr", nil); err != nil || got != "fr" {
		t.Errorf("of a model that takes none: %q, %v", got, err)
	}
}
