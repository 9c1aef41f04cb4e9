package history

import (
	"strings"
	"testing"
)

// TestTokens: the numbers are those of OpenAI's tiktoken.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"hello world", 2},
		{"Turn the kitchen light on, please!", 8},
		{"今天天气怎么样?明天会下雨吗?", 19},
		{"把客厅的灯调到百分之五十,然后放一首周杰伦的歌。", 31},
		{"I'm sure they'LL say we've won; it's Don'T", 15},
		{"12345678 and ١٢٣٤", 13},
		{"  two  spaces   three\t\ttabs", 9},
		{"line\r\n\n  next \n ", 6},
		{" ", 1},
		{"   ", 1},
		{"\n", 1},
		{"😀👍🏽 ok…", 10},
		{`{"volume": 50, "name": "self.audio_speaker.set_volume"}`, 17},
		{"Donaudampfschifffahrtsgesellschaftskapitänsmütze", 20},
		{"zzzzzzzzzzqqqqqqqqqqxxxxxxxxxx", 12},
		{"\u00a0\u3000全角  空格", 9},
		{"おはようございます、안녕하세요", 12},
		{"if x == nil {\n\t\treturn err\n\t}\n", 11},
		{"\x00\x1c\u0085", 4},
	} {
		if n := Tokens(c.text); n != c.want {
			t.Errorf("%q: %d tokens, want %d", c.text, n, c.want)
		}
	}
}

// TestTokensOfLongWord: a text without an end of a word takes time in proportion to its length.
func TestTokensOfLongWord(t *testing.T) {
	const piece = 512
	word := strings.Repeat("声", piece) // three pieces
	if one, all := Tokens(word[:piece]), Tokens(word); all < 2*one || all > 4*one {
		t.Errorf("%d tokens in a piece, %d in three", one, all)
	}
}

// TestTableOfTokens: all tokens are there, and each is found.
func TestTableOfTokens(t *testing.T) {
	lengths, total := int(cl100k[0]), 0
	at := 1 + 4*lengths
	seen := make([]bool, 100256)
	for length := 1; length <= lengths; length++ {
		head := cl100k[1+4*(length-1):]
		for range int(head[0])<<24 | int(head[1])<<16 | int(head[2])<<8 | int(head[3]) {
			token, rank := cl100k[at:at+length], cl100k[at+length:]
			want := uint32(rank[0])<<16 | uint32(rank[1])<<8 | uint32(rank[2])
			if total%20 == 0 && rankOf(token) != want {
				t.Errorf("%q: rank %d, want %d", token, rankOf(token), want)
			}
			seen[want] = true
			at += length + rankBytes
			total++
		}
	}
	if total != len(seen) || at != len(cl100k) {
		t.Errorf("%d tokens, %d of %d bytes", total, at, len(cl100k))
	}
	for rank, there := range seen {
		if !there {
			t.Errorf("no token has rank %d", rank)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"", "I've 12345 words\r\n\n  left ", "你好 \xff\xfe", "'S ' \u00a0 a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n := Tokens(text); n > len(text) || n == 0 && text != "" {
			t.Errorf("%q has %d tokens", text, n)
		}
	})
}
