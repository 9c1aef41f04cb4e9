package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the root of the module, seen from this package.
var root = filepath.Join("..", "..")

// source is one parsed Go file of the module.
type source struct {
	path   string // relative to the root, with slashes
	pkg    string // the folder of path
	isTest bool
	syntax *ast.File
	set    *token.FileSet
}

// at is the place of a node, as path:line.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.set.Position(n.Pos()).Line)
}

// imports lists the import paths of the file.
func (s source) imports() []string {
	var names []string
	for _, spec := range s.syntax.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil { // the parser has accepted it
			names = append(names, name)
		}
	}
	return names
}

// parsed reads all Go files of the module once; testdata, hidden folders and build results are left out.
var parsed = sync.OnceValues(func() ([]source, error) {
	var all []source
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all = append(all, source{path: rel, pkg: path.Dir(rel), isTest: strings.HasSuffix(rel, "_test.go"), syntax: f, set: set})
		return nil
	})
	return all, err
})

// tree gives the files of the module, without those of tests unless tests is set.
func tree(t *testing.T, tests bool) []source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("%d files only: is this the root of the module?", len(all))
	}
	var wanted []source
	for _, s := range all {
		if tests || !s.isTest && !ast.IsGenerated(s.syntax) {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// parseSource parses one file from its text, for tests of the rules themselves.
func parseSource(t *testing.T, name, text string) source {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{path: name, pkg: path.Dir(name), isTest: strings.HasSuffix(name, "_test.go"), syntax: f, set: set}
}
