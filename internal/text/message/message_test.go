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

// TestUse checks that every message is used in the program, and that no message is
// asked for that is not there.
func TestUse(t *testing.T) {
	var program strings.Builder
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		program.Write(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := ids(english)
	for _, id := range all {
		if !strings.Contains(program.String(), `"`+id+`"`) {
			t.Errorf("%s is not used", id)
		}
	}
	areas := map[string]bool{} // what stands before the slash
	for _, id := range all {
		if area, _, ok := strings.Cut(id, "/"); ok {
			areas[area] = true
		}
	}
	pages := "\n" + strings.Join(pageTexts(t), "\n") + "\n"
	asked := regexp.MustCompile(`message\.(?:In|Both|List)\((?:[^"()\n]|\([^"()\n]*\))*"([^"]*)"|"(\w+)/[a-z0-9-]+"`)
	for line := range strings.SplitSeq(program.String(), "\n") {
		if !strings.Contains(line, "/") && !strings.Contains(line, "message.") { // most lines: patterns are slow
			continue
		}
		for _, m := range asked.FindAllStringSubmatch(line, -1) {
			id := m[1]
			if areas[m[2]] {
				id = strings.Trim(m[0], `"`)
			}
			if id != "" && !slices.Contains(all, id) && !strings.Contains(pages, "\n"+id+"\n") {
				t.Errorf("%s is not in the catalogue", id)
			}
		}
	}
}

// pageTexts lists the ids of the texts of pages, which may begin like those of messages.
func pageTexts(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../../console/ui/words/en/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		words, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ids(string(words))...)
	}
	return all
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
