package connection

import (
	"fmt"
	"testing"
)

func TestLanguageOf(t *testing.T) {
	for tag, want := range map[string]string{
		"": "", "*": "", "zh-CN": "zh", "zh": "zh", "ZH_TW": "zh", "yue-HK": "zh", "cmn-Hans": "zh",
		"en-US": "en", "en-US,en;q=0.9,zh;q=0.8": "en", "zh-CN;q=0.8": "zh", "ja-JP": "en", " zh-CN , en": "zh", "zhx": "en",
	} {
		if got := languageOf(tag); got != want {
			t.Errorf("languageOf(%q) = %q, want %q", tag, got, want)
		}
	}
}

func TestLanguagesForgetTheOldest(t *testing.T) {
	l := newLanguages(3)
	for i := range 3 {
		l.set(fmt.Sprint(i), "en")
	}
	l.get("0")       // used: it stays
	l.set("1", "zh") // said again: it stays
	l.set("3", "en")
	for id, want := range map[string]string{"0": "en", "1": "zh", "2": "", "3": "en"} {
		if got := l.get(id); got != want {
			t.Errorf("device %s: %q, want %q", id, got, want)
		}
	}
	l.set("0", "")
	l.set("", "zh")
	if l.get("0") != "en" || l.order.Len() != 3 || len(l.byID) != 3 {
		t.Errorf("empty values changed something: %d entries", l.order.Len())
	}
}

func TestLanguageFor(t *testing.T) {
	for _, tc := range []struct{ own, server, said, want string }{
		{"en", "zh", "zh", "en"},
		{"", "en", "zh", "en"},
		{"", "auto", "en", "en"},
		{"", "", "zh", "zh"},
		{"", "", "", "zh"},
		{"klingon", "auto", "en", "en"},
	} {
		s := &Server{opts: Options{Language: tc.server}, languages: newLanguages(4)}
		s.languages.set("d", tc.said)
		if got := s.languageFor("d", tc.own); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}
