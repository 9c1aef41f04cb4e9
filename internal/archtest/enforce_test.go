package archtest

import (
	"slices"
	"testing"
)

// What fails, and what is only reported because the tree does not meet it yet.
// A rule becomes true here when its test reports nothing.
const (
	enforceSizes     = false // fields, methods and files
	enforceRiddles   = false // comments that paraphrase a name
	enforceDocuments = false // comments that name a document which is not in the repository
	enforceDocs      = false // exported names without a doc comment
	enforceWords     = false // names that the glossary has replaced
	enforceTestNames = false // names of tests that are sentences
	enforceActions   = true  // more than one switch over mcp.Action
	enforceTexts     = false // Chinese text in Go outside the catalogues
)

// shown is the largest number of findings that a test prints.
const shown = 12

// report prints what was found. It fails the test when the rule is enforced and
// there are more findings than allowed.
func report(t *testing.T, enforced bool, allowed int, rule string, found []string) {
	t.Helper()
	if len(found) <= allowed {
		return
	}
	slices.Sort(found)
	say := t.Logf
	if enforced {
		say = t.Errorf
	}
	say("%s: %d, allowed %d", rule, len(found), allowed)
	for i, f := range found {
		if i == shown && !enforced {
			t.Logf("  and %d more", len(found)-shown)
			return
		}
		t.Logf("  %s", f)
	}
}
