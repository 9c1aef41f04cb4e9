package modelfile

import (
	"bytes"
	"strings"
	"testing"
)

func FuzzNetwork(f *testing.F) {
	f.Add([]byte("\x08\x08\x3a\x02\x00\x00\x72\x08\x0a\x01k\x12\x03val"))
	f.Add([]byte("\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("<html>"))
	f.Add([]byte("\x08\x08\x3a\x02\x00\x00\x72\x03\x0a\x09k"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseNetwork(bytes.NewReader(b), int64(len(b)))
		if err == nil && len(b) < 5 {
			t.Errorf("%q is a network: %v", b, n)
		}
		if len(n.metadata) > maxMetadata {
			t.Errorf("%d entries", len(n.metadata))
		}
	})
}

func FuzzTokens(f *testing.F) {
	f.Add("<blk> 0\n你 1\n")
	f.Add("a\n")
	f.Add("a 99999999999999999999\n")
	f.Add(strings.Repeat("x", 5000))
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseTokens(strings.NewReader(s)); err == nil && (n < 1 || n > maxTokens) {
			t.Errorf("%d tokens in %q", n, s)
		}
	})
}
