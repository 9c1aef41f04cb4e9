package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// document matches the name of a Markdown document in a comment.
	document = regexp.MustCompile(`[\w./-]*\w\.md\b`)
	// retired matches citations of documents that were never in the repository.
	retired = regexp.MustCompile(`\bseed 00\d|\bdevice-protocol \d|\bsection 10\b.*design`)
	// citation matches a document of docs with the numbers of its sections or rows.
	citation = regexp.MustCompile(`\bdocs/([\w-]+\.md)(?:,? (?:sections?|rows?|behaviours?))?,? ((?:M?\d+(?:\.\d+)*(?:, | and |–|-)?)+)`)
	number   = regexp.MustCompile(`M?\d+(?:\.\d+)*`)
)

// numbered reports whether a document has a heading, a paragraph or a row of this number.
func numbered(text, n string) bool {
	return regexp.MustCompile(`(?m)^[#*|\- ]*` + regexp.QuoteMeta(n) + `\.?(?:[ *|]|$)`).MatchString(text)
}

// badCitations lists the numbers that a comment cites and that read's documents do
// not have. A document that is not there is the concern of absentDocuments.
func badCitations(comment string, read func(name string) (string, bool)) []string {
	if !strings.Contains(comment, "docs/") {
		return nil // as most are: what follows is slow
	}
	var bad []string
	for _, m := range citation.FindAllStringSubmatch(oneLine(comment), -1) {
		text, ok := read(m[1])
		if !ok {
			continue
		}
		for _, n := range number.FindAllString(m[2], -1) {
			if !numbered(text, n) {
				bad = append(bad, "docs/"+m[1]+" "+n)
			}
		}
	}
	return bad
}

// absentDocuments lists the documents that a comment names and that are not in the repository.
func absentDocuments(comment string, exists func(name string) bool) []string {
	if !slices.ContainsFunc([]string{".md", "seed", "device-protocol", "section"}, func(part string) bool { return strings.Contains(comment, part) }) {
		return nil // as most do: what follows is slow
	}
	comment = oneLine(comment)
	bad := retired.FindAllString(comment, -1)
	for _, name := range document.FindAllString(comment, -1) {
		if !exists(name) {
			bad = append(bad, name)
		}
	}
	return bad
}

// oneLine joins the lines of a comment, so that a citation may be broken over two.
func oneLine(comment string) string { return strings.Join(strings.Fields(comment), " ") }

func readDocs(name string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	return string(text), err == nil
}

func TestCitations(t *testing.T) {
	var absent []string
	for _, s := range tree(t, true) {
		if s.pkg == "internal/archtest" {
			continue // it has made-up ones
		}
		for _, g := range s.syntax.Comments {
			for _, bad := range badCitations(g.Text(), readDocs) {
				t.Errorf("%s cites %s, which is not there", s.at(g), bad)
			}
			exists := func(name string) bool {
				for _, dir := range []string{"", "docs", s.pkg} {
					if _, err := os.Stat(filepath.Join(root, dir, name)); err == nil {
						return true
					}
				}
				return false
			}
			for _, bad := range absentDocuments(g.Text(), exists) {
				absent = append(absent, s.at(g)+" "+bad)
			}
		}
	}
	report(t, 0, "comments that name a document which is not in the repository", absent)
}

func TestBadCitations(t *testing.T) {
	docs := map[string]string{"wire.md": "## 2. Transport\n### 2.1 Connect\n\n3.2.4 abort\n**4.1** x\n", "rows.md": "| 12 | a |\n| M3 | b |\n"}
	read := func(name string) (string, bool) { text, ok := docs[name]; return text, ok }
	for comment, want := range map[string][]string{
		"see docs/wire.md 2.1":                                nil,
		"see docs/wire.md, section 3.2.4.":                    nil,
		"(docs/wire.md 2.1, 4.1 and 3.2.4)":                   nil,
		"see docs/wire.md\n2.1":                               nil,
		"see docs/wire.md":                                    nil,
		"docs/rows.md 12, M3":                                 nil,
		"docs/rows.md 12–13":                                  {"docs/rows.md 13"},
		"see docs/wire.md 2.2":                                {"docs/wire.md 2.2"},
		"docs/wire.md 2.1 and 9":                              {"docs/wire.md 9"},
		"docs/wire.md sections 2.1, 3.2.5":                    {"docs/wire.md 3.2.5"},
		"docs/gone.md 7":                                      nil,
		"docs/wire.md 2.1 says so in 5 words; docs/rows.md 4": {"docs/rows.md 4"},
	} {
		if got := badCitations(comment, read); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
	for comment, want := range map[string][]string{
		"as docs/wire.md has it":  nil,
		"as voice.md 3 has it":    {"voice.md"},
		"see seed 004, 3.3":       {"seed 004"},
		"see device-protocol 5.1": {"device-protocol 5"},
	} {
		got := absentDocuments(comment, func(name string) bool { return name == "docs/wire.md" })
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
}

// TestDocComments looks for exported names that no comment explains. A comment over a group explains its names.
func TestDocComments(t *testing.T) {
	var found []string
	for _, s := range tree(t, false) {
		found = append(found, undocumented(s)...)
	}
	report(t, 0, "exported names without a doc comment", found)
}

// undocumented lists the exported names of a file that no comment explains.
func undocumented(s source) []string {
	var found []string
	note := func(id *ast.Ident, comments ...*ast.CommentGroup) {
		if id.IsExported() && !slices.ContainsFunc(comments, func(g *ast.CommentGroup) bool { return g != nil }) {
			found = append(found, s.at(id)+" "+id.Name)
		}
	}
	for _, decl := range s.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(typeName(d.Recv.List[0].Type)) {
				note(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					note(spec.Name, d.Doc, spec.Doc, spec.Comment)
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						note(id, d.Doc, spec.Doc, spec.Comment)
					}
				}
			}
		}
	}
	return found
}

func TestUndocumented(t *testing.T) {
	s := parseSource(t, "a/b.go", `package a

type A struct{}

// B is documented.
type B int

func (A) M() {}

func (b B) String() string { return "" }

// The group.
const (
	C = 1
	D = 2
)

var E, f = 1, 2

func G() {}

func h() {}

type i struct{}

func (i) J() {}
`)
	want := []string{"a/b.go:3 A", "a/b.go:8 M", "a/b.go:10 String", "a/b.go:18 E", "a/b.go:20 G"}
	if got := undocumented(s); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
