package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plainPackages is the line of the Makefile that names the packages whose tests
// run a second time, without the race detector.
var plainPackages = regexp.MustCompile(`(?m)^PLAIN\s*:=(.*)$`)

// TestArithmetic checks what testall.Arithmetic promises: a test that is left out
// under the race detector starts no goroutine and runs without it.
func TestArithmetic(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := plainPackages.FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no line PLAIN")
	}
	var listed []string
	for name := range strings.FieldsSeq(string(m[1])) {
		listed = append(listed, strings.TrimPrefix(name, "./"))
	}
	var marked []string
	for _, s := range tree(t, true) {
		for _, fn := range arithmetic(s) {
			if !slices.Contains(marked, s.pkg) {
				marked = append(marked, s.pkg)
			}
			if startsGoroutine(fn) {
				t.Errorf("%s: %s starts goroutines: the race detector must see it", s.at(fn), fn.Name.Name)
			}
		}
	}
	slices.Sort(listed)
	slices.Sort(marked)
	if !slices.Equal(listed, marked) {
		t.Errorf("PLAIN in the Makefile is %v, testall.Arithmetic is called in %v", listed, marked)
	}
}

// TestNoRace checks that only plain arithmetic is built without the race detector.
func TestNoRace(t *testing.T) {
	for _, s := range tree(t, false) {
		for _, decl := range s.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Doc == nil || !slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return c.Text == "//go:norace" }) {
				continue
			}
			if s.pkg != "audio/internal/dsp" || startsGoroutine(fn) {
				t.Errorf("%s: %s is hidden from the race detector", s.at(fn), fn.Name.Name)
			}
		}
	}
}

// arithmetic lists the functions of a file that call testall.Arithmetic.
func arithmetic(s source) []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, decl := range s.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Arithmetic" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "testall" {
					found = append(found, fn)
					return false
				}
			}
			return true
		})
	}
	return found
}

// startsGoroutine reports whether a function has a go statement, calls a method
// Go, or uses a channel.
func startsGoroutine(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SendStmt, *ast.SelectStmt, *ast.ChanType:
			found = true
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" {
				found = true
			}
		}
		return !found
	})
	return found
}

// TestStartsGoroutine shows that the rules can fail.
func TestStartsGoroutine(t *testing.T) {
	s := parseSource(t, "x/a_test.go", `package x
func TestA(t *testing.T) { testall.Arithmetic(t); go f() }
func TestB(t *testing.T) { testall.Arithmetic(t); wg.Go(f) }
func TestC(t *testing.T) { testall.Arithmetic(t); f() }
func TestD(t *testing.T) { f() }
`)
	marked := arithmetic(s)
	var got []string
	for _, fn := range marked {
		if startsGoroutine(fn) {
			got = append(got, fn.Name.Name)
		}
	}
	if len(marked) != 3 || !slices.Equal(got, []string{"TestA", "TestB"}) {
		t.Errorf("%d marked, of which %v start goroutines", len(marked), got)
	}
}
