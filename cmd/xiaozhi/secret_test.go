package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestSecret: a key is kept, listed by its end, and forgotten; it is never shown.
func TestSecret(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		line, in string
		code     int
		want     string
	}{
		{"list", "", 0, "no secret is sealed"},
		{"set cloud https://api.example.com/v1", "sk-planted-0123456789-a3f2\n", 0, `"sealed:cloud"`},
		{"", "", 0, "cloud  api.example.com  …a3f2"},
		{"list", "", 0, "cloud  api.example.com  …a3f2"},
		{"set token this-server", "sk-planted-0123456789-a3f2", 0, ""},
		{"list", "", 0, "token  this-server  …a3f2"},
		{"set Cloud api.example.com", "sk-planted-0123456789-a3f2\n", 1, "cannot name a secret"},
		{"set lines api.example.com", "sk-planted\nand more\n", 1, "must be one line"},
		{"set empty api.example.com", "", 1, "must be one line"},
		{"set cloud", "", 2, "usage"},
		{"set cloud api.example.com sk-planted", "", 2, "usage"},
		{"show cloud", "", 2, "delete, list, set"},
		{"delete cloud", "", 0, "deleted"},
		{"delete cloud", "", 1, "没有名为"},
	} {
		var out, errs bytes.Buffer
		code := secret(t.Context(), strings.Fields(test.line), strings.NewReader(test.in), &out, &errs)
		said := out.String() + errs.String()
		if code != test.code || !strings.Contains(said, test.want) || strings.Contains(said, "planted") {
			t.Errorf("%q: exit %d: %s", test.line, code, said)
		}
	}
}

// TestSecretOfAnotherHost: the server does not start with a provider to which a secret must not be sent.
func TestSecretOfAnotherHost(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	if code := secret(t.Context(), []string{"set", "cloud", "api.example.com"}, strings.NewReader("sk-planted\n"), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	settings := "llm: [mine]\nproviders: {mine: {type: openai, model: m, base_url: 'http://127.0.0.1:1/v1', api_key: 'sealed:cloud'}}\n"
	if err := os.WriteFile("config.yaml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, said := runMain(t, "serve", "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(said, "config.yaml:2: providers.mine.api_key: the secret cloud was entered for api.example.com") || strings.Contains(said, "planted") {
		t.Errorf("exit %d: %s", code, said)
	}
}
