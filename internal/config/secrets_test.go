package config

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"xiaozhi/providers"
)

// TestEverySecretHasAFile: beside each key of a secret there is one of a file that holds it.
func TestEverySecretHasAFile(t *testing.T) {
	var look func(section reflect.Type)
	seen := 0
	look = func(section reflect.Type) {
		for section.Kind() == reflect.Map || section.Kind() == reflect.Slice || section.Kind() == reflect.Pointer {
			section = section.Elem()
		}
		for _, name := range childNames(section) {
			child, _ := childType(section, name)
			of, file := child, reflect.TypeFor[string]()
			if child.Kind() == reflect.Map {
				of, file = child.Elem(), reflect.TypeFor[map[string]string]()
			}
			if of != secretType() {
				look(child)
				continue
			}
			seen++
			if got, ok := childType(section, name+fileSuffix); !ok || got != file {
				t.Errorf("%v: there is no %s%s of type %v", section, name, fileSuffix, file)
			}
		}
		if free := freeNames(section); free != nil {
			look(free)
		}
	}
	look(configType())
	if seen < 12 {
		t.Errorf("only %d secrets were seen", seen)
	}
}

// everyFile has every secret in a file of its own.
const everyFile = `
auth: {enabled: true, token_file: FILE}
mcp: {tokens: [{name: n, token: short, token_file: FILE}]}
providers: {a: {type: openai, api_key: "${NOT_SET}", api_key_file: FILE, headers: {A: "${NOT_SET}", B: b}, headers_file: {A: FILE}}}
tools:
  weather: {url: "https://h/{city}", headers_file: {K: FILE}}
  news: {url: "https://h/", headers_file: {K: FILE}}
  endpoint: {enabled: true, tokens: [{token_file: FILE}]}
  offer: [{url_file: URL}]
  external: {mcpServers: {p: {command: x, env_file: {K: FILE}}, w: {url_file: URL, headers: {K: "${NOT_SET}"}, headers_file: {K: FILE}}}}
`

func TestEveryFile(t *testing.T) {
	const secret = "0123456789abcdef"
	file, url := writeFile(t, "secret", secret+"\n"), writeFile(t, "url", " wss://h/?k="+secret+"\n")
	c := mustLoadText(t, strings.NewReplacer("URL", url, "FILE", file).Replace(everyFile))
	tools := c.Tools
	p, w := tools.External.MCPServers["p"], tools.External.MCPServers["w"]
	for what, got := range map[string]providers.Secret{
		"auth": c.Auth.Token, "mcp": c.MCP.Tokens[0].Token, "key": c.Providers["a"].APIKey, "header": c.Providers["a"].Headers["A"],
		"weather": tools.Weather.Headers["K"], "news": tools.News.Headers["K"], "endpoint": tools.Endpoint.Tokens[0].Token, "env": p.Env["K"], "headers": w.Headers["K"],
		"offer": tools.Offer[0].URL[len("wss://h/?k="):], "url": w.URL[len("wss://h/?k="):],
	} {
		if got != secret {
			t.Errorf("%s is %q", what, got.Reveal())
		}
	}
	if c.Providers["a"].Headers["B"] != "b" || len(c.Providers["a"].MissingEnv) > 0 || len(w.MissingEnv) > 0 {
		t.Errorf("%+v", c.Providers["a"])
	}
	postgres := writeFile(t, "pg", "postgres://u:p@h/d\n")
	if c := mustLoadText(t, "", "XIAOZHI_STORE__URL_FILE="+postgres, "XIAOZHI_KEY_FILE=/k"); c.Store.URL != "postgres://u:p@h/d" || c.Store.KeyFile != "/k" {
		t.Errorf("%+v", c.Store)
	}
	if err := os.Chmod(file, 0o666); err != nil { //nolint:gosec // that is the attack
		t.Fatal(err)
	}
	if _, err := loadText(t, "auth:\n  token_file: "+file+"\n"); err == nil || !strings.Contains(err.Error(), ":2: auth.token_file: ") || !strings.Contains(err.Error(), "chmod go-w "+file) {
		t.Errorf("a token that others may write: %v", err)
	}
	_, err := loadText(t, "tools:\n  news:\n    headers_file:\n      K: /nowhere/secret\n")
	if err == nil || !strings.Contains(err.Error(), ":4: tools.news.headers_file.K: stat /nowhere/secret") {
		t.Error(err)
	}
}

// TestUnsealTells: what cannot be opened is told at once, each with its place, and without what was opened.
func TestUnsealTells(t *testing.T) {
	c := mustLoadText(t, "auth:\n  token: sealed:a\nmcp: {tokens: [{name: n, token: 'sealed:b'}]}\nproviders:\n  x: {type: openai, base_url: 'https://h/v1', headers: {K: 'sealed:c'}}\n"+
		"tools: {offer: [{url: 'sealed:d'}], external: {mcpServers: {s: {command: npx, env: {K: 'sealed:e'}}}}}\n")
	if !c.Sealed() || mustLoadText(t, "").Sealed() {
		t.Error("it does not know what is sealed")
	}
	uses := map[string]SecretUse{}
	err := c.Unseal(func(name string, use SecretUse) (string, error) {
		uses[name] = use
		if name == "a" || name == "c" {
			return "", errors.New("no " + name)
		}
		return "planted-0123456789", nil
	})
	if err == nil || !strings.Contains(err.Error(), "config.yaml:2: auth.token: no a\n") || !strings.Contains(err.Error(), "config.yaml:5: providers.x.headers.K: no c") || strings.Contains(err.Error(), "planted") {
		t.Error(err)
	}
	want := map[string]SecretUse{"a": {Kind: SecretShown}, "b": {Kind: SecretShown}, "c": {SecretSent, "https://h/v1"}, "d": {Kind: SecretAddress}, "e": {SecretGiven, "npx"}}
	if !reflect.DeepEqual(uses, want) {
		t.Errorf("%+v", uses)
	}
	if _, err := loadText(t, "store:\n  url: sealed:pg\n"); err == nil || !strings.Contains(err.Error(), ":2: store.url: it opens the store") {
		t.Error(err)
	}
}
