package pocketsphinx

import "testing"

func TestCleanText(t *testing.T) {
	for hyp, want := range map[string]string{
		"":                                "",
		"<s> <sil> </s>":                  "",
		"<s> the(2) [NOISE] TIME ++UM++ ": "the time",
	} {
		if got := cleanText(hyp); got != want {
			t.Errorf("%q: %q, want %q", hyp, got, want)
		}
	}
}
