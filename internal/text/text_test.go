package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	for text, want := range map[string]Lang{"你好": "zh", "hello": "en", "打开 iPhone": "zh", "12:30": "", "": "", "😊": ""} {
		if got := Of(text); got != want {
			t.Errorf("Of(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLangPick(t *testing.T) {
	for lang, want := range map[Lang]string{Chinese: "是", English: "yes", "": "yes", "fr": "yes"} {
		if got := lang.Pick("是", "yes"); got != want {
			t.Errorf("%q: %q, want %q", lang, got, want)
		}
	}
}

func TestIn(t *testing.T) {
	words := []string{"停", "Stop it!", ""}
	for s, want := range map[string]bool{"停。": true, "stop it": true, "stop": false, "": false, "…": false} {
		if got := In(s, words); got != want {
			t.Errorf("In(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"你好", 6, "你好"}, {"你好", 5, "你…"}, {"你好", 2, "…"}, {"abc", -1, "…"},
	} {
		if got := Cut(c.s, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "bread": "bread", " a\tb ": "a b", "evil\r\n\x1b[31mpaired": "evil [31mpaired", "a\u202eb\u200bc\x00": "a b c", "小智　一号": "小智 一号", "\xff": "\ufffd",
	} {
		if got := Line(s); got != want {
			t.Errorf("Line(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{strings.Repeat("a", 40), 30, "aaaa… [cut: 40 bytes in all]"},
		{strings.Repeat("你", 40), 32, "你… [cut: 120 bytes in all]"},
		{"abc", 1, "… [cut: 3 bytes in all]"},
	} {
		if got := Shorten(c.s, c.limit); got != c.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", c.s, c.limit, got, c.want)
		}
	}
}

func TestShortenLimit(t *testing.T) {
	for _, s := range []string{strings.Repeat("长", 100), strings.Repeat("a", 300), strings.Repeat("\xff", 300), "short"} {
		for limit := 40; limit < 120; limit++ {
			got := Shorten(s, limit)
			if len(got) > limit || (len(s) <= limit) != (got == s) || utf8.ValidString(s) && !utf8.ValidString(got) {
				t.Errorf("Shorten(%q, %d) = %q", s, limit, got)
			}
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "b", "b"}, {"a", "", "a"}, {"a", "b", "a b"}, {"a ", "b", "a b"}, {"你", "好", "你好"}, {"打开", "wifi", "打开wifi"}, {"好。", "b", "好。b"}, {"好！", "b", "好！b"}, {"불", "켜 줘", "불 켜 줘"}, {"네.", "불", "네. 불"}, {"電気", "つけて", "電気つけて"}, {"はい。", "次", "はい。次"},
	} {
		if got := Join(c.a, c.b); got != c.want {
			t.Errorf("Join(%q, %q) = %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("你好 abc", 4)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := Cut(s, limit)
		if len(got) > max(limit, 0)+len("…") && got != s || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q", s, limit, got)
		}
	})
}

// TestSentence: what names begin stays as it is.
func TestSentence(t *testing.T) {
	for words, want := range map[string]string{
		"nobody asks with it": "Nobody asks with it", "there's none": "There's none", "no, thanks": "No, thanks", "Yes": "Yes", "没有": "没有", "": "", "x": "x",
		"openai: no key": "openai: no key", "config.yaml:3 is wrong": "config.yaml:3 is wrong", "llm.0 is wrong": "llm.0 is wrong",
		"tts 已由文件指定": "tts 已由文件指定", "there is no 奶奶": "There is no 奶奶",
	} {
		if got := Sentence(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

// TestHalf: what stands in two languages is read in one.
func TestHalf(t *testing.T) {
	for _, tt := range []struct {
		both, zh, en string
	}{
		{"停止播放音乐。\nStops the music.", "停止播放音乐。", "Stops the music."},
		{"Stops.\nAt once.\n\n停止。", "停止。", "Stops.\nAt once."},
		{"换下一首。马上换。 Plays the next song. At once.", "换下一首。马上换。", "Plays the next song. At once."},
		{"先说中文。 再说中文", "先说中文。 再说中文", "先说中文。 再说中文"},
		{"Only this.", "Only this.", "Only this."},
		{"只有 this", "只有 this", "只有 this"},
		{"", "", ""},
	} {
		if zh, en := Half(tt.both, Chinese), Half(tt.both, English); zh != tt.zh || en != tt.en {
			t.Errorf("%q: %q and %q", tt.both, zh, en)
		}
	}
}
