package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// longestTest is the largest number of words in the name of a test, after Test.
const longestTest = 6

// privateWords are names of this project's own that the glossary has replaced by those of the field.
const privateWords = `
	takeAway unsay hushed hushDue goOn cutIn holdFor endTrial interject interjectSpeech interjectNothing stretch deafness hearsItself heardBargeIn
	awaitCalm utterable soundLength cutter soften spokenSentence asides RenderPhrases SoundCache untold tellNext hum hums waitAloud
	mailbox lend giveBack inConversation callRecord doorman allowance purse dues affords grumble attend windDown lifeline askForLife Shelf
	untaken WhyKind courier drip`

func TestNames(t *testing.T) {
	private := strings.Fields(strings.ToLower(privateWords))
	var words, long []string
	for _, s := range tree(t, true) {
		for _, id := range declared(s) {
			if !s.isTest && slices.Contains(private, strings.ToLower(id.Name)) {
				words = append(words, s.at(id)+" "+id.Name)
			}
			if name, ok := strings.CutPrefix(id.Name, "Test"); ok && s.isTest && wordsIn(name) > longestTest {
				long = append(long, s.at(id)+" "+id.Name)
			}
		}
	}
	report(t, 0, "names that the glossary has replaced", words)
	report(t, 0, "names of tests of more than six words", long)
}

// declared lists the names of functions, types, fields, constants and variables that a file declares outside of functions.
func declared(s source) []*ast.Ident {
	var ids []*ast.Ident
	for _, decl := range s.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			ids = append(ids, d.Name)
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncLit:
					return false
				case *ast.TypeSpec:
					ids = append(ids, n.Name)
				case *ast.ValueSpec:
					ids = append(ids, n.Names...)
				case *ast.Field:
					ids = append(ids, n.Names...)
				}
				return true
			})
		}
	}
	return ids
}

// wordsIn counts the words of a name in camel case; letters in a row, as in MCP, are one.
func wordsIn(name string) int {
	n, before := 0, false
	for _, r := range name {
		upper := unicode.IsUpper(r)
		if upper && !before {
			n++
		}
		before = upper
	}
	return n
}

func TestDeclared(t *testing.T) {
	s := parseSource(t, "a/b.go", `package a

import "fmt"

type T struct{ hum, x int }

var v = func() { w := 1; fmt.Println(w) }

func (T) Purse(arg int) {}
`)
	var names []string
	for _, id := range declared(s) {
		names = append(names, id.Name)
	}
	if want := []string{"T", "hum", "x", "v", "Purse"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for name, want := range map[string]int{"Say": 1, "SayPackets": 2, "MCPRequest": 1, "EchoCancelledByServer": 4, "": 0} {
		if got := wordsIn(name); got != want {
			t.Errorf("%s: %d words, want %d", name, got, want)
		}
	}
}
