package app

import (
	"os"
	"testing"

	"xiaozhi/internal/postgrestest"
	"xiaozhi/store"
)

// cluster is the PostgreSQL of these tests.
var cluster postgrestest.Cluster

func TestMain(m *testing.M) {
	code := m.Run()
	cluster.Stop()
	os.Exit(code)
}

// onBoth runs a test with an empty database of each engine.
func onBoth(t *testing.T, f func(t *testing.T, place func(t *testing.T) store.Options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) store.Options { t.Helper(); return store.Options{Path: t.TempDir() + "/x.db"} })
	})
	t.Run("postgres", func(t *testing.T) {
		f(t, func(t *testing.T) store.Options { t.Helper(); return store.Options{URL: cluster.URL(t)} })
	})
}
