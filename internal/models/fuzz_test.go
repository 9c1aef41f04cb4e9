package models

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzInside(f *testing.F) {
	for _, s := range []string{"a/b", "../a", "a/../../b", "/a", `..\a`, "./a", ".", "a\x00b", "c:/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, named string) {
		rel, err := inside(named)
		if err == nil && (!filepath.IsLocal(rel) || strings.ContainsAny(rel, "\\\x00:")) {
			t.Errorf("%q became %q", named, rel)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("PK\x03\x04"), ".zip")
	f.Add([]byte("BZh9"), ".tar.bz2")
	f.Add([]byte("\x1f\x8b\x08\x00"), ".tgz")
	f.Add(make([]byte, 1024), ".tar")
	f.Fuzz(func(t *testing.T, content []byte, end string) {
		dir := t.TempDir()
		file := filepath.Join(dir, "a")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		inner := filepath.Join(dir, "inner")
		if err := os.Mkdir(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		unpack(t.Context(), file, "a"+end, inner, Part{}, nil)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 2 {
			t.Errorf("%d files beside the folder, %v", len(entries), err)
		}
	})
}

func FuzzCatalogue(f *testing.F) {
	f.Add("models: [{name: a, role: asr, parts: [{sources: [{url: 'https://a/b'}]}]}]")
	f.Add(string(known[:2000]))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse([]byte(text))
		for _, e := range c.Models {
			if err == nil && (!filepath.IsLocal(e.Name) || e.Parts[0].Sources[0].file() == "") {
				t.Errorf("%+v", e)
			}
		}
	})
}
