package edge

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// TestToken holds values computed from the browser's rule.
func TestToken(t *testing.T) {
	for at, want := range map[int64]string{
		1700000000: "42301B335578FEFDAE2637DED1ABD614505D432559EC08032B82048483726AFF",
		1700000100: "AE4CF72E466874182A75878E20EADA83D29A1C12CAD9C3E0E014CCE0BFA55880",
	} {
		if got := token(time.Unix(at, 0)); got != want {
			t.Errorf("%d: %s", at, got)
		}
	}
}

func TestMessages(t *testing.T) {
	at := time.Unix(1700000000, 0)
	if got := configMessage(at, "f"); !strings.HasPrefix(got, "X-Timestamp:Tue Nov 14 2023 22:13:20 GMT+0000 (Coordinated Universal Time)\r\n") || !strings.HasSuffix(got, "\r\n") {
		t.Errorf("%q", got)
	}
	got := document("zh-CN-liaoning-XiaobeiNeural", escape("a<b & \x01'c'"), 1.25)
	for _, want := range []string{"(zh-CN-liaoning, XiaobeiNeural)", "rate='+25%'", "a&lt;b &amp;  &#39;c&#39;<"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got := escape("a\ufffeb\x00c\U0001F600\n\ufffdd"); got != "a b c\U0001F600\n d" {
		t.Errorf("%q", got)
	}
	if got := document("x-Y", "", 0.5); !strings.Contains(got, "rate='-50%'") {
		t.Error(got)
	}
}

func TestLongTextIsSplit(t *testing.T) {
	for name, whole := range map[string]string{
		"blanks":     strings.Repeat("word ", 2000),
		"characters": strings.Repeat("\u5929", 4000),
		"entities":   strings.Repeat("a&", 2001),
		"short":      "short",
	} {
		parts := text.Parts(whole, maxText, size)
		if got := strings.Join(parts, " "); name != "short" && len(got) < len(whole)-2*len(parts) {
			t.Errorf("%s: %d of %d bytes are left", name, len(got), len(whole))
		}
		for _, p := range parts {
			p = escape(p)
			if len(p) > maxText || !utf8.ValidString(p) || strings.Count(p, "&") != strings.Count(p, ";") {
				t.Errorf("%s: a part of %d bytes: %.20q…", name, len(p), p)
			}
		}
	}
}

func TestSilenceIsTrimmed(t *testing.T) {
	const rate = 1000 // a sample is a millisecond
	tr := trimmer{rate: rate}
	loud := bytes.Repeat([]byte{1}, 50)
	in := [][]int16{make([]int16, 60), append(make([]int16, 40), ones(50)...), make([]int16, 300), append(ones(10), make([]int16, 500)...), make([]int16, 400)}
	n := 0
	for _, pcm := range in {
		n += len(tr.add(pcm))
	}
	if want := begin + len(loud) + 300 + 10 + end; n != want {
		t.Errorf("%d samples stay, want %d", n, want)
	}
}

func ones(n int) []int16 {
	out := make([]int16, n)
	for i := range out {
		out[i] = 1000
	}
	return out
}

func FuzzParse(f *testing.F) {
	f.Add(true, []byte("X-RequestId:1\r\nPath:turn.end\r\n\r\n{}"))
	f.Add(false, []byte("\x00\x0cPath:audio\r\nsound"))
	f.Add(false, []byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, isText bool, b []byte) {
		path, body, err := parse(isText, b)
		if err == nil && (len(body) > len(b) || path != strings.ToLower(path)) {
			t.Errorf("path %q and %d of %d bytes", path, len(body), len(b))
		}
	})
}

// block is a WebM element.
func element(id []byte, size byte, body string) []byte {
	return append(append(id, 0x80|size), body...)
}

func TestPacketsOfWebM(t *testing.T) {
	var b bytes.Buffer
	b.Write(element([]byte{0x1A, 0x45, 0xDF, 0xA3}, 4, "head"))
	b.Write([]byte{0x18, 0x53, 0x80, 0x67, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}) // a segment of unknown length
	b.Write(element([]byte{0x15, 0x49, 0xA9, 0x66}, 3, "inf"))
	b.Write([]byte{0x1F, 0x43, 0xB6, 0x75, 0xFF}) // a cluster
	b.Write(element([]byte{0xE7}, 1, "t"))
	b.Write(element([]byte{0xA3}, 7, "\x81\x00\x00\x80one"))
	b.Write(element([]byte{0xA0}, 9, "")) // a group, whose block comes next
	b.Write(element([]byte{0xA1}, 7, "\x81\x00\x14\x00two"))
	whole := b.Bytes()
	w := newWebM(bytes.NewReader(whole))
	for _, want := range []string{"one", "two"} {
		if got, err := w.next(); string(got) != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := w.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	w = newWebM(bytes.NewReader(whole[:len(whole)-1]))
	_, _ = w.next()
	if _, err := w.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
}

func FuzzWebM(f *testing.F) {
	f.Add(element([]byte{0xA3}, 7, "\x81\x00\x00\x80one"))
	f.Add([]byte{0x1F, 0x43, 0xB6, 0x75, 0xFF, 0xA3, 0x40, 0x05, 0x81, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWebM(bytes.NewReader(b))
		for n := 0; ; n++ {
			packet, err := w.next()
			if err != nil {
				return
			}
			if n > len(b) || len(packet) > len(b) {
				t.Fatal("more comes out than went in")
			}
		}
	})
}
