package message

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/text"
)

// ids lists the ids of a catalogue in its order.
func ids(catalogue string) []string {
	var all []string
	for line := range strings.Lines(catalogue) {
		if id, _, ok := strings.Cut(line, " = "); ok && !strings.HasPrefix(line, "\t") {
			all = append(all, id)
		}
	}
	return all
}

// TestCatalogues checks that both languages have the same messages in the same
// order, each once.
func TestCatalogues(t *testing.T) {
	en, zh := ids(english), ids(chinese)
	if !slices.Equal(en, zh) {
		t.Errorf("English has %q\nChinese has %q", en, zh)
	}
	if sorted := slices.Compact(slices.Sorted(slices.Values(en))); !slices.Equal(en, sorted) {
		t.Errorf("not in order, or one is there twice: %q", en)
	}
}

// TestUse checks that every message is used in the program, and that the program
// uses no other.
func TestUse(t *testing.T) {
	used := map[string]bool{}
	literal := regexp.MustCompile(`"((?:app|bench|config|command|connection|gateway|talk|tool|external|iot|local|mcp|router|sim)/[a-z0-9-]+)"`)
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range literal.FindAllSubmatch(source, -1) {
			used[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids(english) {
		if !used[id] {
			t.Errorf("%s is not used", id)
		}
		delete(used, id)
	}
	for id := range used {
		t.Errorf("%s is not in the catalogue", id)
	}
}

func TestIn(t *testing.T) {
	const catalogue = "# first line\na = one %s\nb = two\n\tlines %d\nc =  spaced\n"
	for id, want := range map[string]string{"a": "one %s", "b": "two\nlines %d", "c": " spaced", "none": "none", "one": "one"} {
		if got, ok := find(catalogue, id); got != want || ok != (id != want) {
			t.Errorf("%s: %q, %v, want %q", id, got, ok, want)
		}
	}
	if got, want := Both("sim/not-found", "x"), "x not found / 找不到 x"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := In(text.Chinese, "config/none-of", "y", "x"); got != "只能是：x" {
		t.Error(got)
	}
	if got := In("fr", "config/none-of", "y", "x"); got != `"y" is none of: x` {
		t.Error(got)
	}
}
