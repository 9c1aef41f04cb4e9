package sherpaserver

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestUtterance holds the header of 0.1 s at 16 kHz, and the range of samples.
func TestUtterance(t *testing.T) {
	got := utterance(make([]int16, 1600), 16000)
	if hex.EncodeToString(got[:8]) != "803e000000190000" || len(got) != 8+6400 {
		t.Errorf("% x and %d bytes", got[:8], len(got))
	}
	if got := floats(nil, []int16{-32768, 16384}); !bytes.Equal(got, []byte{0, 0, 0x80, 0xbf, 0, 0, 0, 0x3f}) {
		t.Errorf("% x, want -1 and 0.5", got)
	}
}

func TestSegmentsAreJoined(t *testing.T) {
	var s segments
	for i, c := range []struct{ message, want string }{
		{`{"text":" turn","segment":0}`, "turn"},
		{`{"text":" turn it\ton","segment":0,"is_final":true}`, "turn it on"},
		{`{"text":"","segment":1}`, "turn it on"},
		{`{"text":"please","segment":1,"is_eof":true}`, "turn it on please"},
	} {
		r, err := parse([]byte(c.message))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.add(r); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	if r, err := parse([]byte("{\"text\":\"a\x01b\",\"lang\":\"<|zh|>\"}")); err != nil || r.Text != "a b" || r.Lang != "zh" {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"text":"a","segment":1,"is_final":true}`))
	f.Add([]byte("{\"text\":\"a\nb\"}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		if r, err := parse(b); err == nil {
			var s segments
			s.add(r)
		}
		if !bytes.Equal(b, before) {
			t.Error("the message was changed")
		}
	})
}
