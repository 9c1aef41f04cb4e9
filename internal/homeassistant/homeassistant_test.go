package homeassistant

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// read is what a file of this content gives.
func read(t *testing.T, content string) ([]string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "options.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Environment(file)
}

func TestOptions(t *testing.T) {
	env, err := read(t, `{"language":"zh","timezone":"","pairing":"ask","deepseek_api_key":"sk=1 2",
		"environment":[{"name":"XIAOZHI_SERVER__MAX_DEVICES","value":"20"},{"name":"DEEPSEEK_API_KEY","value":"later"}]}`)
	want := []string{"DEEPSEEK_API_KEY=sk=1 2", "XIAOZHI_SERVER__LANGUAGE=zh", "XIAOZHI_AUTH__PAIRING=ask", "XIAOZHI_SERVER__MAX_DEVICES=20", "DEEPSEEK_API_KEY=later"}
	if err != nil || !slices.Equal(env, want) {
		t.Errorf("%q, %v; want %q", env, err, want)
	}
	if env, err := read(t, `{}`); err != nil || len(env) != 0 {
		t.Errorf("nothing set gives %q, %v", env, err)
	}
}

// TestBadOptions: what is wrong is named, and no key is told.
func TestBadOptions(t *testing.T) {
	for content, want := range map[string]string{
		``:                                   "JSON",
		`[]`:                                 "JSON",
		`null`:                               "JSON",
		`{"langage":"zh"}`:                   "langage",
		`{"language":7}`:                     "language",
		`{"openai_api_key":["s3cr3t"]}`:      "openai_api_key",
		`{"openai_api_key":"s3cr3t\u0000"}`:  "openai_api_key",
		`{"environment":{"A":"s3cr3t"}}`:     "environment",
		`{"environment":[{"value":"x"}]}`:    "environment",
		`{"environment":[{"name":"A"}]}`:     "A",
		`{"environment":[{"name":"A B=C"}]}`: "environment",
		`{"environment":[{"name":"A","value":"s3cr3t\u0000"}]}`: "A",
		`{"language":"` + strings.Repeat("x", limit) + `"}`:     "65536",
	} {
		env, err := read(t, content)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "options.json") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%.60s gives %q, %v; want an error that names %s", content, env, err, want)
		}
	}
	if _, err := Environment(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file is no error")
	}
}
