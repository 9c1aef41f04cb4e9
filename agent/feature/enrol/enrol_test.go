package enrol

import (
	"testing"
	"unicode/utf8"
)

func TestNameIn(t *testing.T) {
	for words, want := range map[string]string{
		"Anna": "Anna", "my name is Anna.": "Anna", "I'm Anna": "Anna", "It is  Anna Maria!": "Anna Maria", "Ian": "Ian", "anna o'neil": "Anna O'neil",
		"the voice of Ben": "Ben", "isabel": "Isabel", "我叫小明。": "小明", "我的名字是 小明": "小明", "这是爷爷": "爷爷", "我": "我", "": "", "  ": "", "?!": "",
		"a name that is far too long to be one of a person": "",
		"Anna <b>": "", "Anna\" and \"Ben": "", "42": "", "Jean-Luc": "Jean-Luc", "Зоя": "Зоя",
	} {
		if got := nameIn(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func FuzzNameIn(f *testing.F) {
	for _, words := range []string{"my name is Anna", "我叫小明", "I am I am", "\x00", "ǅ İ"} {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		name := nameIn(words)
		if n := utf8.RuneCountInString(name); n > 2*maxName {
			t.Errorf("%q: %d characters", name, n)
		}
	})
}
