// Package testall divides tests into those that `make test` runs and those that
// only `make test-all` adds, which sets the variable TEST_ALL: whole tables of
// recordings, long storms, programs of others. Test files import it, nothing else.
package testall

import (
	"os"
	"testing"
)

// Running reports whether all tests run.
func Running() bool { return os.Getenv("TEST_ALL") != "" }

// Only skips the test unless all tests run.
func Only(tb testing.TB) {
	tb.Helper()
	if !Running() {
		tb.Skip("runs in make test-all (TEST_ALL=1)")
	}
}
