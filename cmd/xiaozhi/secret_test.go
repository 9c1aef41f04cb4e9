package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestSecret: a key is kept, listed by its end, and forgotten; it is never shown.
func TestSecret(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		line, in string
		code     int
		want     string
	}{
		{"put cloud https://api.example.com/v1", "sk-planted-0123456789-a3f2\n", 0, ""},
		{"", "", 0, "cloud  api.example.com  …a3f2"},
		{"put Cloud api.example.com", "sk-planted-0123456789-a3f2\n", 1, "cannot name a secret"},
		{"put cloud", "", 2, "usage"},
		{"show cloud", "", 2, "usage"},
		{"forget cloud", "", 0, ""},
		{"forget cloud", "", 1, "没有名为"},
	} {
		var out, errs bytes.Buffer
		code := secret(t.Context(), strings.Fields(test.line), strings.NewReader(test.in), &out, &errs)
		said := out.String() + errs.String()
		if code != test.code || !strings.Contains(said, test.want) || strings.Contains(said, "planted") {
			t.Errorf("%q: exit %d: %s", test.line, code, said)
		}
	}
}
