package store

import (
	"os"
	"testing"

	"xiaozhi/internal/postgrestest"
)

// cluster is the PostgreSQL of these tests.
var cluster postgrestest.Cluster

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	code := m.Run()
	cluster.Stop()
	os.Exit(code)
}

// postgresURL is the address of an empty database.
func postgresURL(t *testing.T) string {
	t.Helper()
	return cluster.URL(t)
}
