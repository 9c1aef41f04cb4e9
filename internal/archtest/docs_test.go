package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// documents gives the texts of the module's Markdown documents, by path relative to the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(rel)] = fence.ReplaceAllString(string(text), "")
		}
	}
	return texts
}

// anchors lists the fragments of a document's headings, as Markdown viewers make them.
func anchors(text string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return names
}

func TestDocumentLinks(t *testing.T) {
	texts := documents(t)
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, fragment, _ := strings.Cut(m[1], "#")
			file := name
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			} else if fragment != "" && !slices.Contains(anchors(texts[file]), fragment) {
				t.Errorf("%s links to %s, which has no such heading", name, m[1])
			}
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# One Two\n## 1. Light dialect: a, b\n### M13：时间花在哪里\n")
	want := []string{"one-two", "1-light-dialect-a-b", "m13时间花在哪里"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// paths lists what a document quotes that looks like a path of the module.
func paths(text string) []string {
	var names []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		top, _, _ := strings.Cut(m[1], "/")
		switch top {
		case ".", "agent", "audio", "cmd", "connection", "console", "docs", "e2e", "internal", "knowledge", "mcp", "memory", "prompts", "providers", "scripts", "store", "voices":
			if !strings.ContainsAny(m[1], " *") {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// oneOfMany are packages of which the map tells together: one a service, one a page.
const oneOfMany = "providers/* internal/servicetest/* console/*"

// TestArchitecture checks that the map of the packages is whole, and that what it
// and the glossary point to is there.
func TestArchitecture(t *testing.T) {
	texts := documents(t)
	const file = "docs/architecture.md"
	for _, name := range []string{file, "docs/glossary.md"} {
		for _, p := range paths(texts[name]) {
			if _, err := os.Stat(filepath.Join(root, p)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	told := paths(texts[file])
	var missing []string
	for _, s := range tree(t, false) {
		if !slices.Contains(told, s.pkg) && !slices.Contains(missing, s.pkg) && !anyMatches(oneOfMany, s.pkg) {
			missing = append(missing, s.pkg)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s does not tell of %q", file, missing)
	}
}

// TestArchitectureOrder checks that each package imports only packages that stand
// above it in the map of the packages, or beside it in its row.
func TestArchitectureOrder(t *testing.T) {
	_, table, found := strings.Cut(documents(t)["docs/architecture.md"], "| package | what it does |")
	if !found {
		t.Fatal("docs/architecture.md has no table of packages")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]int{}
	for i, line := range strings.Split(table, "\n") {
		for _, p := range paths(line) {
			if _, ok := rows[p]; !ok {
				rows[p] = i
			}
		}
	}
	for _, s := range tree(t, false) {
		for _, name := range s.imports() {
			own, ok := strings.CutPrefix(name, module+"/")
			if !ok || rows[s.pkg] == 0 || rows[own] <= rows[s.pkg] {
				continue // not of the table, or in order
			}
			t.Errorf("%s imports %s, which stands below it in docs/architecture.md", s.path, own)
		}
	}
}
