package pocketsphinx

import "testing"

func TestCepstralMean(t *testing.T) {
	m := newCepstralMean()
	if got := m.remove(nil, typicalMean)[0]; got != (cepstrum{}) {
		t.Errorf("a typical frame becomes %v", got)
	}
	loud := cepstrum{80}
	for range 10000 {
		m.hear(loud)
	}
	if got := m.remove(nil, loud)[0][0]; got > 0.5 || got < 0 {
		t.Errorf("after 100 s of the same frame it still becomes %v", got)
	}
	before := m
	m.hear(cepstrum{-20})
	if m != before {
		t.Error("digital silence moved the mean")
	}
}
