package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseLang(t *testing.T) {
	for tag, want := range map[string]Lang{
		"zh": "zh", "zh-CN": "zh", "zh_CN": "zh", "zh-Hans": "zh", "zh-Hans-CN": "zh", "cmn": "zh", "cmn-Hans-CN": "zh",
		"zh-TW": "zh-TW", "zh-HK": "zh-HK", "zh-Hant": "zh-Hant", "yue": "yue",
		"en": "en", "en-US": "en", "EN_us": "en", "en-GB": "en-GB", "en-US-u-nu-latn": "en", " ja-JP ": "ja", "jpn": "ja", "de-DE": "de", "de-AT": "de-AT",
		"pt-BR": "pt", "pt-PT": "pt-PT", "es-419": "es-419", "ko-KR": "ko", "vi-VN": "vi", "ru-RU": "ru", "iw": "he", "sr-Latn": "sr-Latn",
	} {
		if got, err := ParseLang(tag); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", tag, got, err, want)
		}
		if again, err := ParseLang(string(want)); again != want || err != nil {
			t.Errorf("%q again: %q, %v", want, again, err)
		}
	}
	for _, wrong := range []string{"", "*", "jp", "cn", "german", "auto", "x-foo", "und", "und-JP", "zh,en", strings.Repeat("en-", 30), "\xff", "中文"} {
		if got, err := ParseLang(wrong); err == nil || got != "" || TagOf(wrong) != "" {
			t.Errorf("%q: %q, %v", wrong, got, err)
		}
	}
}

func TestNearestLang(t *testing.T) {
	for wrong, want := range map[string]Lang{
		"jp": "ja", "jp-JP": "ja", "cn": "zh", "vn": "vi", "ua": "uk", "gr": "el", "dk": "da", "cz": "cs", "us": "en", "gb": "en",
		"german": "de", "Deutsch": "de", "Chinese": "zh", "中文": "zh", "日语": "ja", "日本語": "ja", "japaneese": "ja", "russian": "ru", "engilsh": "en", "": "en",
	} {
		if wrong == "" {
			NearestLang(wrong)
			continue
		}
		if got := NearestLang(wrong); got != want {
			t.Errorf("%q: %q, want %q", wrong, got, want)
		}
	}
}

func TestLangName(t *testing.T) {
	for _, c := range []struct{ lang, in, want Lang }{
		{"ja", "en", "Japanese"}, {"ja", "zh", "日语"}, {"ja", "ja", "日本語"}, {"de-AT", "en", "German"}, {"pt-PT", "en", "European Portuguese"},
		{"zh-HK", "en", "Chinese"}, {"zh-TW", "zh", "繁体中文"}, {"tlh", "en", "tlh"}, {"en", "en", "English"},
	} {
		if got := c.lang.Name(c.in); got != string(c.want) {
			t.Errorf("%s in %s: %q, want %q", c.lang, c.in, got, c.want)
		}
	}
	for n := range named {
		if l, err := ParseLang(n.tag); err != nil || string(l) != n.tag {
			t.Errorf("the tag %q of the list: %q, %v", n.tag, l, err)
		}
	}
}

func TestLangNamed(t *testing.T) {
	for name, want := range map[string]Lang{
		"": "", "zh": "zh", "en-US": "en", "english": "en", "Chinese": "zh", "mandarin": "zh", "cantonese": "yue", "german": "de", "Deutsch": "de", "日语": "ja", "日本語": "ja", "jpn": "ja", "eng": "en",
		"wobbly": "", "<|zh|>": "", "\xff": "",
	} {
		if got := LangNamed(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestFallbacks(t *testing.T) {
	for lang, want := range map[Lang]string{
		"": "en", "en": "en", "en-GB": "en-GB en", "zh": "zh en", "zh-Hant-HK": "zh-Hant-HK zh-Hant zh en", "yue": "yue zh en", "ja": "ja en", "pt-PT": "pt-PT pt en",
	} {
		var got []string
		for _, l := range lang.Fallbacks() {
			got = append(got, string(l))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %s", lang, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	voices := map[string]string{"": "any", "zh": "a", "en": "b", "ja": "c", "pt-PT": "d", "no": "e", "nonsense tag": "f"}
	for lang, want := range map[Lang]string{
		"zh": "a", "zh-TW": "a", "yue": "a", "en": "b", "en-GB": "b", "ja": "c", "pt-PT": "d", "pt": "d", "nb": "e", "fr": "", "": "", "ko": "",
	} {
		if got, ok := Find(voices, lang); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v, want %q", lang, got, ok, want)
		}
	}
	if _, ok := Find(map[string]string{}, "ja"); ok {
		t.Error("found in nothing")
	}
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		said               string
		heard, usual, want Lang
	}{
		{"打开灯", "", "", "zh"}, {"打开灯", "en", "en", "zh"}, {"turn on", "", "zh", "en"}, {"turn on", "zh", "zh", "en"}, {"OK", "", "ja", "ja"}, {"turn on the light", "", "ja", "en"}, {"OK", "en", "ru", "en"}, {"USB", "", "zh-TW", "en"}, {"26", "en", "zh", "zh"}, {"26", "de", "", "de"}, {"", "", "", ""},
		{"明日の天気", "", "zh", "ja"}, {"明日三時", "", "ja", "ja"}, {"明日三時", "", "zh", "zh"}, {"明日三時", "ja", "zh", "ja"}, {"電気つけて", "zh", "zh", "ja"}, {"好の东西很多很多", "", "zh", "zh"}, {"テレビ", "", "en", "ja"},
		{"불 켜 줘", "", "zh", "ko"}, {"включи свет", "", "zh", "ru"}, {"включи свет", "", "uk", "uk"}, {"Їжак", "", "en", "uk"}, {"включи свет", "bg", "en", "bg"},
		{"Bật đèn phòng khách", "", "en", "vi"}, {"how do I cook phở", "", "en", "en"}, {"xin chao", "vi", "en", "vi"}, {"xin chào", "", "vi", "vi"},
		{"Mach das Licht an", "de", "en", "de"}, {"Mach das Licht an", "", "de", "de"}, {"Mach das Licht an", "", "en", "en"}, {"Mach das Licht an", "de", "de-AT", "de-AT"}, {"Mach das Licht an", "ja", "de", "de"},
		{"¿Qué hora es?", "", "zh", "es"}, {"¿Qué hora es?", "", "es", "es"}, {"Wie heißt du", "", "zh", "de"}, {"打开灯", "yue", "zh", "yue"}, {"打開燈", "zh", "zh-TW", "zh-TW"},
		{"สวัสดี", "", "en", "th"}, {"مرحبا", "", "en", "ar"}, {"سلام", "", "fa", "fa"}, {"नमस्ते", "", "zh", "hi"}, {"γεια", "", "en", "el"}, {"안녕 means hello in that language", "", "en", "en"}, {"ꦲꦏꦱ", "", "zh", "en"},
	} {
		if got := Resolve(c.said, c.heard, c.usual); got != c.want {
			t.Errorf("%q heard as %q where %q is usual: %q, want %q", c.said, c.heard, c.usual, got, c.want)
		}
	}
}

func FuzzLang(f *testing.F) {
	for _, seed := range []string{"", "zh-CN", "en_US", "x-a", "\xff", "de-DE-u-co-phonebk", "日本", "ї", "a-a-a-a-a"} {
		f.Add(seed, "ja")
	}
	f.Fuzz(func(t *testing.T, tag, said string) {
		l, err := ParseLang(tag)
		if again, err2 := ParseLang(string(l)); err == nil && (err2 != nil || again != l) {
			t.Errorf("%q is %q, and that %q, %v", tag, l, again, err2)
		}
		if got := NearestLang(tag); TagOf(string(got)) == "" {
			t.Errorf("the nearest to %q is %q", tag, got)
		}
		if got := Resolve(said, l, l); got != "" && TagOf(string(got)) == "" || !utf8.ValidString(string(got)) {
			t.Errorf("%q in %q: %q", said, l, got)
		}
	})
}
