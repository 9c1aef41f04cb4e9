package archtest

import (
	"slices"
	"strings"
	"testing"
)

// report fails the test when more was found than is allowed.
func report(t *testing.T, allowed int, rule string, found []string) {
	t.Helper()
	if slices.Sort(found); len(found) > allowed {
		t.Errorf("%s: %d, allowed %d\n  %s", rule, len(found), allowed, strings.Join(found, "\n  "))
	}
}
