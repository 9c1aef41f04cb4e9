package sentence

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

func split(text string, piece int) []string {
	var s Splitter
	var out []string
	r := []rune(text)
	for len(r) > 0 {
		n := min(piece, len(r))
		out = append(out, s.Feed(string(r[:n]))...)
		r = r[n:]
	}
	return append(out, s.Flush()...)
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"first at a comma", "今天天气很好，适合出去走走。明天可能会下雨，记得带伞。", []string{"今天天气很好，", "适合出去走走。明天可能会下雨，记得带伞。"}},
		{"comma too early", "好的，我来帮你打开客厅灯。", []string{"好的，我来帮你打开客厅灯。"}},
		{"no cut before twelve", "好的，接下来我就为你详细介绍一下北京的各个著名景点吧，请听。", []string{"好的，", "接下来我就为你详细介绍一下北京的各个著名景点吧，请听。"}},
		{"long quote first", "“你好呀，我是小智很高兴认识你希望我们成为好朋友”，他说。", []string{"“你好呀，", "我是小智很高兴认识你希望我们成为好朋友”，他说。"}},
		{"face made of signs", "Sorry :( I can't do that for you today. Please ask me again tomorrow. Thank you very much.", []string{"Sorry :( I can't do that for you today.", "Please ask me again tomorrow. Thank you very much."}},
		{"inches", "A 5\" disk is small. It is really very old though, and nobody uses it. That is all.", []string{"A 5\" disk is small.", "It is really very old though, and nobody uses it.", "That is all."}},
		{"bracket that never closes", "好的。下面是一段很长的话（里面有一个没有关上的括号，所以要看看它会怎么样。后面还有一句很长很长的话。再来一句话结束这个段落吧。", []string{"好的。", "下面是一段很长的话（里面有一个没有关上的括号，所以要看看它会怎么样。", "后面还有一句很长很长的话。", "再来一句话结束这个段落吧。"}},
		{"wide colon in a time", "现在是下午12：30，该吃饭了。", []string{"现在是下午12：30，", "该吃饭了。"}},
		{"dash", "他沉默了——然后说他不去了，你们去吧。", []string{"他沉默了——", "然后说他不去了，你们去吧。"}},
		{"nothing to say first", "😊\n你好呀小智，很高兴认识你。", []string{"😊", "你好呀小智，", "很高兴认识你。"}},
		{"short first sentence stands alone", "好的。现在为您播放音乐，请稍等。", []string{"好的。", "现在为您播放音乐，请稍等。"}},
		{"English sentences", "It is ten past nine. The weather is really very fine today. Bye.", []string{"It is ten past nine.", "The weather is really very fine today.", "Bye."}},
		{"first English clause", "Well then my friend, let us see what we can do about it.", []string{"Well then my friend,", "let us see what we can do about it."}},
		{"decimal", "Pi is about 3.14159 and e is 2.71828. That is all there is to say.", []string{"Pi is about 3.14159 and e is 2.71828.", "That is all there is to say."}},
		{"thousands", "It costs 1,250,000 dollars. That is quite a lot of money.", []string{"It costs 1,250,000 dollars.", "That is quite a lot of money."}},
		{"abbreviation", "Ask Dr. Smith or Mr. J. Jones about it. They know more than I do.", []string{"Ask Dr. Smith or Mr. J. Jones about it.", "They know more than I do."}},
		{"address", "Look at https://example.com/a.b?c=d&e=f for more. It has all of it.", []string{"Look at https://example.com/a.b?c=d&e=f for more.", "It has all of it."}},
		{"time of day", "现在是8:30分左右，该起床了。", []string{"现在是8:30分左右，", "该起床了。"}},
		{"quote closes with its sentence", "他说：“我不去。”然后就走了，再也没有回来。", []string{"他说：“我不去。”", "然后就走了，再也没有回来。"}},
		{"brackets", "这个（包括电池。）很贵，要三百块钱一个。", []string{"这个（包括电池。）", "很贵，要三百块钱一个。"}},
		{"newline", "第一行\n第二行\n", []string{"第一行", "第二行"}},
		{"list numbers", "1. Apples are red and quite sweet\n2. Pears are green and juicy\n", []string{"1. Apples are red and quite sweet", "2. Pears are green and juicy"}},
		{"emoji first", "😊今天真不错，我们出去玩吧！", []string{"😊今天真不错，", "我们出去玩吧！"}},
		{"tag", "<emotion name=\"a. b\">Hello there. I am here to help you out.", []string{"<emotion name=\"a. b\">Hello there.", "I am here to help you out."}},
		{"nothing", "", nil},
		{"white space", " \n \t ", nil},
		{"no mark", "no mark at all", []string{"no mark at all"}},
		{"later ones are merged", "我来说一下。是的。对。没错。就是这样的一个情况。好。", []string{"我来说一下。", "是的。对。没错。就是这样的一个情况。", "好。"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, piece := range []int{1, 2, 3, 7, 1000} {
				if got := split(c.text, piece); !slices.Equal(got, c.want) {
					t.Errorf("pieces of %d: %q, want %q", piece, got, c.want)
				}
			}
		})
	}
}

// A first segment comes as soon as its mark is there: CJK marks need no look-ahead.
func TestSplitIsEarly(t *testing.T) {
	var s Splitter
	if got := s.Feed("今天天气很好，"); !slices.Equal(got, []string{"今天天气很好，"}) {
		t.Errorf("after the comma: %q", got)
	}
	s = Splitter{}
	if got := s.Feed("好。"); !slices.Equal(got, []string{"好。"}) {
		t.Errorf("after the stop: %q", got)
	}
	s = Splitter{}
	if got := s.Feed("All done."); got != nil {
		t.Errorf("a Latin stop was taken before the rune that follows: %q", got)
	}
	if got := s.Feed(" "); !slices.Equal(got, []string{"All done."}) {
		t.Errorf("after the space: %q", got)
	}
}

// Marks in a row stay together when they come together; a mark that comes late
// goes with what follows, for a CJK stop does not wait.
func TestSplitMarksInARow(t *testing.T) {
	for piece, want := range map[int][]string{
		1: {"真的吗？", "！太好了……我们走吧，一起出发。"},
		8: {"真的吗？！", "太好了……我们走吧，一起出发。"},
	} {
		if got := split("真的吗？！太好了……我们走吧，一起出发。", piece); !slices.Equal(got, want) {
			t.Errorf("pieces of %d: %q, want %q", piece, got, want)
		}
	}
}

// The first segment never waits for more than twelve CJK characters when there
// is a mark to cut at (M17).
func TestSplitFirstSegmentLength(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		words := make([]rune, 80)
		for i := range words {
			words[i] = []rune("天地人你我他，、：。！？“”（）")[min(r.IntN(30), 5+r.IntN(11))]
		}
		var s Splitter
		for i := range words {
			if s.Feed(string(words[i : i+1])); s.some {
				break
			}
			chars, mark := 0, -1
			for j, c := range words[:i+1] {
				if text.IsCJK(c) {
					chars++
				} else if (isStop(c) || isPause(c)) && chars > 0 && mark < 0 {
					mark = j
				}
			}
			if chars > 14 && mark >= 0 {
				t.Fatalf("nothing was cut from %q", string(words[:i+1]))
			}
		}
	}
}

func TestSplitForced(t *testing.T) {
	long := strings.Repeat("没有标点的话语", 30)
	for _, seg := range split(long, 5) {
		if n := utf8.RuneCountInString(seg); n > 61 {
			t.Errorf("segment of %d characters", n)
		}
	}
	words := strings.Repeat("word ", 100)
	for _, seg := range split(words, 11) {
		if len(seg) > 270 || strings.Contains(" "+seg+" ", " wor ") {
			t.Errorf("bad cut: %q", seg)
		}
	}
	if got := split(strings.Repeat("x", 500), 50); strings.Join(got, "") != strings.Repeat("x", 500) {
		t.Errorf("letters lost: %q", got)
	}
}

// squeeze is text without white space: what no split may change.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"今天，好。Yes. 3.14", "a.b.c", "“。”", "<a", "👨‍👩‍👧‍👦。", "1. x\n2. y", "((((((。", "…………"} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, piece uint8) {
		text = strings.ToValidUTF8(text, "?")
		got := split(text, int(piece%17)+1)
		if a, b := squeeze(strings.Join(got, "")), squeeze(text); a != b {
			t.Errorf("text changed: %q, want %q", a, b)
		}
		for _, seg := range got {
			if strings.TrimSpace(seg) == "" {
				t.Errorf("empty segment in %q", got)
			}
		}
	})
}

func TestSplitDoesNotDependOnPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("今天好，。！？“”（） abc.,!?1234\n：:;")
	for range 500 {
		text := make([]rune, 1+r.IntN(120))
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
		}
		if a, b := split(string(text), 1), split(string(text), 2); strings.Join(a, "") != strings.Join(b, "") && squeeze(strings.Join(a, "")) != squeeze(strings.Join(b, "")) {
			t.Fatalf("%q: %q and %q", string(text), a, b)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	text := strings.Repeat("今天天气很好，适合出去走走。明天可能会下雨，记得带伞。", 10)
	b.ReportAllocs()
	for b.Loop() {
		split(text, 2)
	}
}
