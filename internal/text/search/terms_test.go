package search

import (
	"slices"
	"strings"
	"testing"
)

// termsOf lists the terms of a text, sorted.
func termsOf(s string, skip func(string) bool) string {
	var all []string
	Each(s, skip, func(term string, _ float64) { all = append(all, term) })
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

func TestEach(t *testing.T) {
	for s, want := range map[string]string{
		"":                               "",
		"The filters were CLEANED twice": "clean filter th twic wer",
		"滤网":                             "滤 滤网 网",
		"滤网E05故障":                        "e05 故 故障 滤 滤网 网 障",
		"Ｅ０５":                            "e05",
		"フィルター掃除":                        "ィル フィ ルタ ター ー掃 掃 掃除 除",
		"don't":                          "don t",
		"batteries, 电池":                  "battery 池 电 电池",
	} {
		if got := strings.Fields(termsOf(s, nil)); !slices.Equal(sorted(got), sorted(strings.Fields(want))) {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	if got := termsOf("the 的滤网", func(w string) bool { return w == "the" || w == "的" }); got != "滤 滤网 的滤 网" {
		t.Errorf("got %q", got)
	}
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func TestWeight(t *testing.T) {
	rare, usual := Rarity(1, 100), Rarity(90, 100)
	if rare <= usual || usual <= 0 {
		t.Errorf("rarity: %v, %v", rare, usual)
	}
	once, often := Weight(rare, 1, 1, 1, 0.5), Weight(rare, 1, 5, 1, 0.5)
	if often <= once || often > 5*once {
		t.Errorf("once %v, five times %v", once, often)
	}
	if long := Weight(rare, 1, 1, 3, 0.5); long >= once {
		t.Errorf("in a long text %v, else %v", long, once)
	}
}

func FuzzEach(f *testing.F) {
	f.Add("滤网 E05 cleaned ﬁnd")
	f.Add("\xff\xfe的的的的")
	f.Fuzz(func(t *testing.T, s string) {
		Each(s, nil, func(term string, weight float64) {
			if term == "" || weight <= 0 || weight > 1 {
				t.Errorf("%q: term %q of weight %v", s, term, weight)
			}
		})
	})
}
