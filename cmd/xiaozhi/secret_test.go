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
		{"put cloud https://api.example.com/v1", "sk-planted-0123456789-a3f2\n", 0, ""},
		{"", "", 0, "cloud  api.example.com  …a3f2"},
		{"put Cloud api.example.com", "sk-planted-0123456789-a3f2\n", 1, "cannot name a secret"},
		{"put cloud", "", 2, "usage"},
		{"show cloud", "", 2, "usage"},
		{"forget cloud", "", 0, ""},
		{"forget cloud", "", 1, "没有名为"},
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
	if code := secret(t.Context(), []string{"put", "cloud", "api.example.com"}, strings.NewReader("sk-planted\n"), &out, &errs); code != 0 {
		t.Fatal(errs.String())
	}
	settings := "llm: [mine]\nproviders: {mine: {type: openai, model: m, base_url: 'http://127.0.0.1:1/v1', api_key: 'sealed:cloud'}}\n"
	if err := os.WriteFile("config.yaml", []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, said := runMain(t, "serve", "--listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(said, "providers.mine.api_key: the secret cloud was entered for api.example.com") || strings.Contains(said, "planted") {
		t.Errorf("exit %d: %s", code, said)
	}
}
