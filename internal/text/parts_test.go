package text

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParts(t *testing.T) {
	for name, test := range map[string]struct {
		words string
		most  int
		size  func(rune) int
		want  []string
	}{
		"no limit":          {" as it is, \n", 0, nil, []string{" as it is, \n"}},
		"it fits":           {" as it is, ", 20, nil, []string{" as it is, "}},
		"nothing to say":    {" !? ", 2, nil, nil},
		"sentences":         {"One is here. Two, too. Three", 15, nil, []string{"One is here.", "Two, too.", "Three"}},
		"clauses":           {"\u4e00\u4e8c\u4e09\u56db\uff0c\u4e94\u516d", 6, nil, []string{"\u4e00\u4e8c\u4e09\u56db\uff0c", "\u4e94\u516d"}},
		"blanks":            {"alpha beta gamma", 12, nil, []string{"alpha beta", "gamma"}},
		"anywhere":          {"\u4e00\u4e8c\u4e09\u56db\u4e94", 2, nil, []string{"\u4e00\u4e8c", "\u4e09\u56db", "\u4e94"}},
		"a number is whole": {"it is 3.14159", 9, nil, []string{"it is", "3.14159"}},
		"bytes":             {"\u4e00\u4e8c\u4e09", 6, utf8.RuneLen, []string{"\u4e00\u4e8c", "\u4e09"}},
		"too big a sign":    {"\u4e00\u4e8c", 2, utf8.RuneLen, []string{"\u4e00", "\u4e8c"}},
		"signs of several":  {"abe\u0301cd", 3, nil, []string{"ab", "e\u0301c", "d"}},
		"only signs remain": {"alpha !!! ?!?", 6, nil, []string{"alpha"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Parts(test.words, test.most, test.size); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzParts(f *testing.F) {
	f.Add("One. Two, three \u4e00\u4e8c\u3002\u4e09", 5)
	f.Add("e\u0301\u0301\u0301\u200d\xff", 1)
	f.Fuzz(func(t *testing.T, words string, most int) {
		strip := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if most = min(max(most, 1), 50); strings.ContainsFunc(words, func(r rune) bool { return !IsWord(r) && r != ' ' }) {
			for _, part := range Parts(words, most, nil) {
				if utf8.RuneCountInString(part) > most {
					t.Errorf("%q has more than %d characters", part, most)
				}
			}
			return
		}
		if got := Parts(words, most, nil); strip(strings.Join(got, "")) != strip(words) {
			t.Errorf("%q became %q", words, got)
		}
	})
}
