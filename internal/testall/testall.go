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

// Pick returns all if all tests run, and quick otherwise.
func Pick[T any](all, quick T) T {
	if Running() {
		return all
	}
	return quick
}

// Arithmetic skips the test under the race detector, where sums take ten times as long. The test starts no goroutine,
// so nothing is lost: make test runs its package a second time without the race detector (PLAIN in the Makefile).
func Arithmetic(tb testing.TB) {
	tb.Helper()
	if race {
		tb.Skip("arithmetic of one goroutine: runs without the race detector")
	}
}

// Race reports whether the race detector runs, under which nothing takes the time that it takes.
func Race() bool { return race }
