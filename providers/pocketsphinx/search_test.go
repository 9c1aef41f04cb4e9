package pocketsphinx

import "testing"

func TestIsFiller(t *testing.T) {
	for word, want := range map[string]struct{ filler, silence bool }{
		"": {true, true}, "<s>": {true, true}, "</s>": {true, true}, "<sil>": {true, true}, "SIL": {true, true},
		"[SPEECH]": {true, false}, "++UM++": {true, false}, "(NULL)": {true, false},
		"stop": {false, false}, "the(2)": {false, false},
	} {
		if isFiller(word) != want.filler || want.filler && isSilence(word) != want.silence {
			t.Errorf("%q: filler %v, silence %v", word, isFiller(word), isSilence(word))
		}
	}
}

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
