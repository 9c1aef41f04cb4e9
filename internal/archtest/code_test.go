package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// catalogues hold texts on purpose: prompts and phrases, and the words by which
// offline engines understand and read a language. What simulated clients say is
// not of this program.
const catalogues = "prompts internal/text/... providers/rules/... providers/local/... internal/speechtest internal/bench internal/devicetest internal/conformance"

// actionModel is the package that declares Action.
const actionModel = "mcp"

// TestActionSwitch: one place decides what the outcome of a tool means.
func TestActionSwitch(t *testing.T) {
	var found []string
	for _, s := range tree(t, false) {
		found = append(found, actionSwitches(s)...)
	}
	if len(found) == 0 {
		t.Error("no switch over mcp.Action at all: has the type another name?")
	}
	report(t, 1, "switches over mcp.Action", found)
}

// actionSwitches lists the switches of a file over an Action, but for its String method.
func actionSwitches(s source) []string {
	var found []string
	for _, decl := range s.syntax.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name == "String" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sw, ok := n.(*ast.SwitchStmt)
			if ok && slices.ContainsFunc(sw.Body.List, func(c ast.Stmt) bool {
				clause, ok := c.(*ast.CaseClause)
				return ok && slices.ContainsFunc(clause.List, func(e ast.Expr) bool { return isAction(s, e) })
			}) {
				found = append(found, s.at(sw))
			}
			return true
		})
	}
	return found
}

// isAction reports whether an expression is one of the constants of mcp.Action.
func isAction(s source, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && x.Name == "mcp" && strings.HasPrefix(e.Sel.Name, "ActionType")
	case *ast.Ident:
		return s.pkg == actionModel && strings.HasPrefix(e.Name, "ActionType")
	default:
		return false
	}
}

func TestActionSwitches(t *testing.T) {
	s := parseSource(t, "agent/a.go", `package agent

func f(a mcp.Action, e error) {
	switch a {
	case mcp.ActionTypeNone, mcp.ActionTypeError:
	}
	switch e.(type) {
	case mcp.ActionResponse:
	}
	switch {
	case a == mcp.ActionTypeNone:
	}
	func() {
		switch a {
		default:
		case mcp.ActionTypeReqLLM:
		}
	}()
}
`)
	if got, want := actionSwitches(s), []string{"agent/a.go:4", "agent/a.go:14"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTexts: what people hear and read is in catalogues, by language, and not in Go.
func TestTexts(t *testing.T) {
	var found []string
	for _, s := range tree(t, false) {
		if !anyMatches(catalogues, s.pkg) {
			if n := len(chinese(s)); n > 0 {
				found = append(found, fmt.Sprintf("%s: %d", s.path, n))
			}
		}
	}
	report(t, 0, "files with Chinese texts outside the catalogues", found)
}

// chinese lists the literals of a file with Chinese characters.
func chinese(s source) []string {
	var found []string
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if ok && (lit.Kind == token.STRING || lit.Kind == token.CHAR) &&
			strings.ContainsFunc(lit.Value, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			found = append(found, s.at(lit))
		}
		return true
	})
	return found
}

func TestChinese(t *testing.T) {
	s := parseSource(t, "a/b.go", "package a\n\n// 中文\nvar a, b, c = \"你好\", 'x', '零'\n\nvar d = \"—。é\"\n")
	if got, want := chinese(s), []string{"a/b.go:4", "a/b.go:4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// raceFree lists the packages that neither start goroutines nor use locks: their
// tests need no race detector.
func raceFree(sources []source) []string {
	racy := make(map[string]bool) // of every package seen
	for _, s := range sources {
		racy[s.pkg] = racy[s.pkg] || slices.ContainsFunc(s.imports(), func(name string) bool { return name == "sync" || name == "sync/atomic" })
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				racy[s.pkg] = true
			}
			return true
		})
	}
	var free []string
	for pkg, is := range racy {
		if !is {
			free = append(free, pkg)
		}
	}
	slices.Sort(free)
	return free
}

func TestRaceFree(t *testing.T) {
	sources := []source{
		parseSource(t, "a/a.go", "package a\n\nfunc f() { go f() }\n"),
		parseSource(t, "b/b.go", "package b\n\nimport \"sync\"\n\nvar m sync.Mutex\n"),
		parseSource(t, "c/c.go", "package c\n\nfunc f() { f() }\n"),
	}
	if got := raceFree(sources); !slices.Equal(got, []string{"c"}) {
		t.Errorf("%q", got)
	}
	t.Logf("neither goroutines nor locks: %s", strings.Join(raceFree(tree(t, false)), " "))
}
