package app

import (
	"os"
	"testing"

	"xiaozhi/internal/postgrestest"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/store"
)

// cluster is the PostgreSQL of these tests.
var cluster postgrestest.Cluster

// keys are the variables that services are found by.
var keys = []string{
	"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "DEEPSEEK_MODEL",
	"DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL", "DASHSCOPE_MODEL",
	"GEMINI_API_KEY", "VOLCENGINE_API_KEY", "VOLCENGINE_APP_ID", "OPENAI_REALTIME_BASE_URL",
}

// TestMain takes out of the environment what would be picked up, and ends the database.
func TestMain(m *testing.M) {
	for _, name := range keys {
		os.Setenv(name, "")
	}
	pocketsphinx.Spare(3) // tests open a recogniser each, one after the other
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
