package app

import (
	"os"
	"path/filepath"
	"testing"

	"xiaozhi/internal/config"
)

// mustLoadText loads settings from the text of one file, without a data folder.
func mustLoadText(t *testing.T, text string, environ ...string) *config.Config {
	t.Helper()
	c, _, err := config.Load(config.Options{File: writeFile(t, "config.yaml", text), Env: environ})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
