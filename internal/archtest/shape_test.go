package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"testing"
)

// Limits of what one type and one package may own. The official Go MCP SDK keeps within about that.
const (
	maxFields  = 20 // of a struct with a field that is not exported
	maxMethods = 35 // of a type
	maxFiles   = 30 // of a package, tests aside
	maxRiddles = 20 // comments in the whole tree that paraphrase a name
)

// tables are structs that mirror a table of a C library: their fields are not theirs to divide.
var tables = []string{"providers/pocketsphinx.library"}

// riddle matches a comment that says what a thing is by a question.
var riddle = regexp.MustCompile(`^\w+ (is|are) (what|who|how|when|since when|whether|where)\b`)

// shape counts what types and packages own.
type shape struct {
	fields, methods, files map[string]int
	riddles                []string
}

func measure(sources []source) shape {
	m := shape{fields: make(map[string]int), methods: make(map[string]int), files: make(map[string]int)}
	for _, s := range sources {
		m.files[s.pkg]++
		for _, decl := range s.syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && len(d.Recv.List) == 1 {
					m.methods[s.pkg+"."+typeName(d.Recv.List[0].Type)]++
				}
				m.judge(s, d, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if ts, ok := spec.(*ast.TypeSpec); ok {
						m.judge(s, ts, d.Doc)
						m.count(s, ts)
					}
				}
			}
		}
	}
	return m
}

// judge notes a doc comment that is a riddle.
func (m *shape) judge(s source, n ast.Node, doc *ast.CommentGroup) {
	if doc != nil && riddle.MatchString(doc.Text()) {
		m.riddles = append(m.riddles, s.at(n)+" "+riddle.FindString(doc.Text()))
	}
}

// count notes the fields of a struct, unless all are exported (options and wire formats) or it is a table.
func (m *shape) count(s source, ts *ast.TypeSpec) {
	st, ok := ts.Type.(*ast.StructType)
	name := s.pkg + "." + ts.Name.Name
	if !ok || slices.Contains(tables, name) {
		return
	}
	n, hidden := 0, false
	for _, f := range st.Fields.List {
		n += max(1, len(f.Names))
		hidden = hidden || slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return !id.IsExported() })
	}
	if hidden {
		m.fields[name] = n
	}
}

// typeName is the name of a receiver's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return "?"
	}
}

// over lists what is counted more often than allowed.
func over(counts map[string]int, most int) []string {
	var found []string
	for name, n := range counts {
		if n > most {
			found = append(found, fmt.Sprintf("%s: %d", name, n))
		}
	}
	return found
}

func TestSizes(t *testing.T) {
	m := measure(tree(t, false))
	report(t, 0, fmt.Sprintf("structs of more than %d fields", maxFields), over(m.fields, maxFields))
	report(t, 0, fmt.Sprintf("types of more than %d methods", maxMethods), over(m.methods, maxMethods))
	report(t, 0, fmt.Sprintf("packages of more than %d files", maxFiles), over(m.files, maxFiles))
	report(t, maxRiddles, "comments that paraphrase a name", m.riddles)
}

func TestMeasure(t *testing.T) {
	s := parseSource(t, "a/b.go", `package a

// T is what holds things.
type T[P any] struct {
	a, b int
	C    P
	error
}

type Options struct{ A, B, C int }

// M does it.
func (t *T[P]) M() {}

func (T[P]) N() {}
`)
	m := measure([]source{s, s})
	if m.fields["a.T"] != 4 || len(m.fields) != 1 || m.methods["a.T"] != 4 || m.files["a"] != 2 {
		t.Errorf("%+v", m)
	}
	if want := []string{"a/b.go:4 T is what", "a/b.go:4 T is what"}; !slices.Equal(m.riddles, want) {
		t.Errorf("riddles %q, want %q", m.riddles, want)
	}
	if got := over(map[string]int{"x": 3, "y": 2}, 2); !slices.Equal(got, []string{"x: 3"}) {
		t.Errorf("over: %q", got)
	}
}
