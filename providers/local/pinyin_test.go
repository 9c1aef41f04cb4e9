package local

import (
	"testing"

	"github.com/mozillazg/go-pinyin"
)

// TestReadingsAreTheDictionarys: the table has the first reading of each character of the dictionary, and no others.
func TestReadingsAreTheDictionarys(t *testing.T) {
	r := newReader()
	args := pinyin.NewArgs()
	args.Style = pinyin.Tone3
	for c := range rune(0x32400) {
		want := ""
		if all := pinyin.SinglePinyin(c, args); len(all) > 0 {
			want = all[0]
		}
		if got := r.reading(c); got != want {
			t.Errorf("%c (U+%04X) is read %q, want %q", c, c, got, want)
		}
	}
}
