package sentence

import (
	"strings"
	"testing"

	"xiaozhi/internal/text"
)

func TestSpeakable(t *testing.T) {
	for _, c := range []struct {
		in   string
		lang text.Lang
		want string
	}{
		{"**重要**：请看`代码`。", "zh", "重要：请看代码。"},
		{"# Title", "en", "Title"},
		{"- first\n- second", "en", "first, second"},
		{"1. 苹果\n2. 香蕉\n好吃。\n真的", "zh", "1. 苹果，2. 香蕉，好吃。 真的"},
		{"> quoted words", "en", "quoted words"},
		{"See [the page](https://example.com/x) now.", "en", "See the page now."},
		{"See https://example.com/a?b=c, please.", "en", "See link please."},
		{"请看https://example.com/a。谢谢", "zh", "请看链接。谢谢"},
		{"<b>bold</b> text", "en", "bold text"},
		{"3 < 4 and 5 > 2", "en", "3 < 4 and 5 > 2"},
		{"（微笑）你好呀", "zh", "你好呀"},
		{"*smiles* Hello there", "en", "Hello there"},
		{"```go", "en", ""},
		{"---", "en", ""},
		{"……", "zh", ""},
		{"a_b and __c__", "en", "a_b and c"},
		{"3 * 4 = 12", "en", "3 times 4 = 12"},
		{"2*3*4等于24", "zh", "2乘3乘4等于24"},
		{"| 名称 | 价格 |\n|:---|---:|\n| 苹果 | 5元 |", "zh", "名称 价格，苹果 5元"},
	} {
		if got := Speakable(c.in, c.lang); got != c.want {
			t.Errorf("Speakable(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ in, speech, emotion, emoji string }{
		{"😊你好！", "你好！", "", "😊"},
		{"[happy] Hello.", "Hello.", "happy", ""},
		{"[bewildered] This is odd.", "This is odd.", "neutral", ""},
		{"[here](http://example.com) it is.", "here it is.", "", ""},
		{"(maybe) it is.", "(maybe) it is.", "", ""},
		{"[whatever] Hello.", "Hello.", "neutral", ""},
		{"家人👨‍👩‍👧‍👦都好❤️", "家人都好", "", "👨‍👩‍👧‍👦"},
		{"好👍🏽的", "好的", "", "👍🏽"},
		{"😂", "", "", "😂"},
		{"1️⃣ 开灯 2️⃣ 关灯", "1 开灯 2 关灯", "", ""},
		{"按3️⃣😊", "按3", "", "😊"},
		{"#️⃣ *️⃣", "", "", "#️⃣"},
		{"Temperature 23℃ → ok", "Temperature 23℃ → ok", "", ""},
	} {
		s := New(c.in, "zh")
		if s.Display != c.in || s.Speech != c.speech || s.Emotion != c.emotion || s.Emoji != c.emoji {
			t.Errorf("New(%q) = %+v", c.in, s)
		}
	}
	if s := New("Hello.", "zh"); s.Language != "en" {
		t.Errorf("language of an English sentence: %q", s.Language)
	}
	if s := New("123", "zh"); s.Language != "zh" {
		t.Errorf("language of a number in a Chinese turn: %q", s.Language)
	}
}

func TestSegmentFace(t *testing.T) {
	for _, c := range []struct{ in, emotion, emoji string }{
		{"😂好笑", "funny", "😂"},
		{"[sad] oh", "sad", "😔"},
		{"🦄独角兽", "neutral", "🦄"},
		{"plain", "", ""},
	} {
		s := New(c.in, "zh")
		s.Face()
		if s.Emotion != c.emotion || s.Emoji != c.emoji {
			t.Errorf("%q: emotion %q emoji %q", c.in, s.Emotion, s.Emoji)
		}
	}
}

// FuzzUnmark holds that a text in which nothing is marked has nothing to be taken out.
func FuzzUnmark(f *testing.F) {
	for _, s := range []string{"今天，好。", "WWW.example.org", "ftp://a", "2 * 3", "（笑）好", "- a\n- b", "|--|--|", "---", "a~~b", "\u200b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, words string) {
		words = strings.ToValidUTF8(words, "?")
		if clean := unmark(words, " link ", "$1 times $2"); !marked(words) && clean != words {
			t.Errorf("%q is not marked, but becomes %q", words, clean)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for _, words := range []string{"今天天气很好，适合出去走走。", "今天**天气**很好，适合出去走走。"} {
		b.Run(words, func(b *testing.B) {
			for b.Loop() {
				New(words, "zh-CN")
			}
		})
	}
}
