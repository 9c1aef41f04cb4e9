package sse

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// all reads a stream to its end.
func all(r *Reader) (out []string, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, err
		}
		out = append(out, e.Name+"|"+string(e.Data))
	}
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"plain":                  {"data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		"names":                  {"event: x\nid: 1\ndata: a\n\ndata: b\n\n", []string{"x|a", "|b"}},
		"no space":               {"data:a\n\ndata:[DONE]\n\n", []string{"|a", "|[DONE]"}},
		"two spaces":             {"data:  a\n\n", []string{"| a"}},
		"CRLF":                   {"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"x|a", "|b"}},
		"CR alone":               {"data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		"lines joined":           {"data: a\ndata: b\n\n", []string{"|a\nb"}},
		"comments":               {": keep-alive\n\n: x\ndata: a\n: y\n\n:\n\n", []string{"|a"}},
		"a name without data":    {"event: ping\n\ndata: a\n\n", []string{"|a"}},
		"a line without a colon": {"data\n\nretry\n\n", []string{"|"}},
		"no blank line at last":  {"data: a\n\ndata: b", []string{"|a", "|b"}},
		"bare JSON":              {"data: a\n\n{\"error\":\"x: y\"}\n\ndata: b\n\n", []string{"|a", `|{"error":"x: y"}`, "|b"}},
		"JSON over lines":        {"data: {\ndata: \"a\":1}\n\n", []string{"|{\n\"a\":1}"}},
		"a mark at the start":    {"\uFEFFdata: a\n\n", []string{"|a"}},
		"many blank lines":       {"\n\n\n\ndata: a\n\n\n\n", []string{"|a"}},
		"nothing":                {"", nil},
		"not events":             {"<html>\n<body>\n", nil},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "by bytes": iotest.OneByteReader, "with the error": iotest.DataErrReader,
		} {
			got, err := all(NewReader(wrap(strings.NewReader(c.in))))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q, %v, want %q", name, how, got, err, c.want)
			}
		}
	}
}

func TestLines(t *testing.T) {
	got, err := all(NewLines(strings.NewReader("{\"a\":1}\r\n\n \n{\"b\":\ntail")))
	if want := []string{`|{"a":1}`, `|{"b":`, "|tail"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"a line":    endless("x"),
		"a comment": io.MultiReader(strings.NewReader(":"), endless("x")),
		"an event":  endless("data: x\n"),
		"comments":  endless(": x\n\n"),
	} {
		r := NewReader(in)
		if name != "a line" {
			r.left = 1 << 20 // short ones take long
		}
		if got, err := all(r); !errors.Is(err, ErrTooLong) || got != nil {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
	broken := errors.New("reset")
	got, err := all(NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("a stream that breaks: %q, %v", got, err)
	}
}

// endless repeats a text for ever.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: {\"a\":1}\n\ndata: [DONE]\n\n", "event: x\r\ndata:\r\n\r\n", ":c\rdata:a\rdata:b\r\r", "{\"error\":1}\n", "\uFEFF\n", "data: 你好\n\n",
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, in string, size int) {
		whole, err := all(NewReader(strings.NewReader(in)))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := all(NewReader(iotest.OneByteReader(strings.NewReader(in))))
		if err != nil || !slices.Equal(whole, pieces) {
			t.Errorf("%q at once, %q by bytes, %v", whole, pieces, err)
		}
		for _, e := range whole {
			if len(e) > len(in)+1 {
				t.Errorf("%q of %q", e, in)
			}
		}
		if _, err := all(NewLines(strings.NewReader(in))); err != nil {
			t.Error(err)
		}
	})
}
