package app

import (
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/store"
)

// planted is a secret that must be seen nowhere.
const planted = "planted-0123456789"

// seal keeps secrets by their names, each for its purpose.
func seal(t *testing.T, cfg *config.Config, data string, secrets map[string]string) {
	t.Helper()
	s, err := OpenSecrets(t.Context(), cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	for name, purpose := range secrets {
		value := planted
		if strings.HasPrefix(name, "url") {
			value = "wss://tools.example.com/mcp?token=" + planted
		}
		if err := s.Put(t.Context(), name, purpose, value, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// load reads settings as the program does.
func loadSettings(t *testing.T, data, settings string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{File: file, DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestSealedKey: a provider gets the secret that it names if it is asked at the host the secret was entered for.
func TestSealedKey(t *testing.T) {
	data := t.TempDir()
	seal(t, config.Default(), data, map[string]string{"cloud": "api.example.com"})
	for _, test := range []struct{ key, address, driver, want, why string }{
		{"sealed:cloud", "https://api.example.com/v1", "auto", planted, ""},
		{"plain", "https://evil.example/v1", "auto", "plain", ""},
		{"sealed:cloud", "https://evil.example/v1", "auto", "", ":3: providers.mine.api_key: the secret cloud was entered for api.example.com"},
		{"sealed:cloud", "", "auto", "", "api.openai.com"},
		{"sealed:clout", "https://api.example.com/v1", "auto", "", `"clout" (did you mean cloud?)`},
		{"sealed:cloud", "https://api.example.com/v1", "none", "", "store.driver"},
	} {
		settings := "store: {driver: " + test.driver + "}\nproviders: {mine: {type: openai, base_url: '" + test.address + "',\n  api_key: '" + test.key + "'}}\n"
		for _, check := range []bool{false, true} {
			a := newApp(loadSettings(t, data, settings), Options{Data: data, Log: slog.New(slog.DiscardHandler), Check: check})
			err := a.openStore(t.Context())
			kept, looked := a.keeps(t.Context())
			if err = cmp.Or(err, looked); err == nil {
				err = a.unseal(t.Context(), a.opener(kept))
			}
			got := string(a.cfg.Providers["mine"].APIKey)
			if test.why == "" && (err != nil || got != test.want) || test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), planted)) {
				t.Errorf("%+v, check %v: %q %v", test, check, got, err)
			}
			a.Close()
		}
	}
}

// everySecret names a sealed secret wherever the settings have one.
const everySecret = `
auth: {enabled: true, token: "sealed:device"}
mcp: {tokens: [{name: laptop, token: "sealed:laptop"}]}
llm: [mine, rules]
providers: {mine: {type: openai, model: m, base_url: "http://127.0.0.1:1/v1", api_key: "sealed:model", headers: {X-Key: "sealed:header"}}}
tools:
  weather: {url: "https://weather.example.com/{city}", headers: {X-Key: "sealed:weather"}}
  news: {url: "https://news.example.com/rss", headers: {X-Key: "sealed:news"}}
  endpoint: {enabled: true, tokens: [{token: "sealed:bridge"}]}
  offer: [{url: "sealed:url-offer"}]
  external:
    mcpServers:
      files: {command: npx, env: {TOKEN: "sealed:files"}}
      maps: {url: "sealed:url-maps", headers: {Authorization: "sealed:maps"}}
`

func everyPurpose() map[string]string {
	return map[string]string{
		"device": sealed.ThisServer, "laptop": sealed.ThisServer, "bridge": sealed.ThisServer, "model": "http://127.0.0.1:1", "header": "http://127.0.0.1:1",
		"weather": "weather.example.com", "news": "news.example.com", "files": sealed.Program + "npx", "maps": "tools.example.com",
		"url-maps": "tools.example.com", "url-offer": "tools.example.com",
	}
}

// TestEverySecret: each secret of the settings may be sealed, is opened for its purpose only, and is shown nowhere.
func TestEverySecret(t *testing.T) {
	data := t.TempDir()
	seal(t, config.Default(), data, everyPurpose())
	var log, banner bytes.Buffer
	build := func(check bool) (*App, error) {
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		return Build(t.Context(), loadSettings(t, data, everySecret), Options{Data: data, Banner: &banner, Log: logger, Check: check})
	}
	for _, check := range []bool{true, false} {
		a, err := build(check)
		if err != nil {
			t.Fatalf("check %v: %v", check, err)
		}
		c := a.cfg
		maps := c.Tools.External.MCPServers["maps"]
		for what, got := range map[string]string{
			"device": string(c.Auth.Token), "laptop": string(c.MCP.Tokens[0].Token), "model": string(c.Providers["mine"].APIKey),
			"header": string(c.Providers["mine"].Headers["X-Key"]), "weather": string(c.Tools.Weather.Headers["X-Key"]), "news": string(c.Tools.News.Headers["X-Key"]),
			"bridge": string(c.Tools.Endpoint.Tokens[0].Token), "files": string(c.Tools.External.MCPServers["files"].Env["TOKEN"]), "maps": string(maps.Headers["Authorization"]),
		} {
			if got != planted {
				t.Errorf("%s is %q", what, got)
			}
		}
		if !strings.HasSuffix(string(maps.URL), planted) || !strings.HasSuffix(string(c.Tools.Offer[0].URL), planted) {
			t.Errorf("%q %q", maps.URL, c.Tools.Offer[0].URL)
		}
		a.Report(&banner)
		banner.Write(c.Redacted())
		a.Close()
	}
	for name := range everyPurpose() {
		seal(t, config.Default(), data, map[string]string{name: "other.example.com"})
		if _, err := build(true); err == nil || !strings.Contains(err.Error(), "the secret "+name+" was entered for") || !strings.Contains(err.Error(), "config.yaml:") {
			t.Errorf("%s for another purpose: %v", name, err)
		} else {
			banner.WriteString(err.Error())
		}
		seal(t, config.Default(), data, map[string]string{name: everyPurpose()[name]})
	}
	if shown := log.String() + banner.String(); strings.Contains(shown, planted) {
		t.Errorf("a secret is shown:\n%s", shown)
	}
}

// TestSealedTooShort: a sealed token is held to its length, where it is named.
func TestSealedTooShort(t *testing.T) {
	data := t.TempDir()
	s, err := OpenSecrets(t.Context(), config.Default(), data)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(s.Put(t.Context(), "short", sealed.ThisServer, "hunter2", ""), s.Close()); err != nil {
		t.Fatal(err)
	}
	a := newApp(loadSettings(t, data, "mcp:\n  tokens:\n    - name: n\n      token: sealed:short\n"), Options{Data: data, Log: slog.New(slog.DiscardHandler), Check: true})
	defer a.Close()
	kept, err := a.keeps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.unseal(t.Context(), a.opener(kept)); err == nil || !strings.Contains(err.Error(), ":4: mcp.tokens.0.token: the token is too short") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestCheckAgents: a check knows the agents that people have made, and says which cannot be used, and of what nearest name.
func TestCheckAgents(t *testing.T) {
	data := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(data, databaseFile)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add := func(name, doc string) {
		t.Helper()
		if err := s.Agents.Put(t.Context(), name, "", store.AgentRevision{Rev: 1, Doc: doc}, 10); err != nil {
			t.Fatal(err)
		}
	}
	check := func() error {
		a, err := Build(t.Context(), loadSettings(t, data, "agent: {prompt: grandma}\n"), Options{Data: data, Banner: io.Discard, Log: slog.New(slog.DiscardHandler), Check: true})
		if err == nil {
			a.Close()
		}
		return err
	}
	add("grandma", `{"prompt":"storyteller"}`)
	if err := check(); err != nil {
		t.Error(err)
	}
	add("anna", `{"llm":["ruls"]}`)
	if err := check(); err == nil || !strings.Contains(err.Error(), "agent anna: ") || !strings.Contains(err.Error(), "did you mean rules?") {
		t.Error(err)
	}
}

// TestKeyElsewhere: the key is where the settings say, and nowhere else.
func TestKeyElsewhere(t *testing.T) {
	data, key := t.TempDir(), filepath.Join(t.TempDir(), "my-key")
	cfg, _, err := config.Load(config.Options{DataDir: data, Env: []string{"XIAOZHI_KEY_FILE=" + key}})
	if err != nil {
		t.Fatal(err)
	}
	seal(t, cfg, data, map[string]string{"cloud": "api.example.com"})
	if _, err := os.Stat(key); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(data, keyFile)); err == nil {
		t.Error("there is a key in the data folder")
	}
	s, err := OpenSecrets(t.Context(), config.Default(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Open(t.Context(), "cloud", "api.example.com"); err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Error(err)
	}
	files, err := backupFiles(data, nil, key, refuse)
	if err != nil || len(files) != 1 || files[0].Name != keyFile || files[0].Path != key {
		t.Errorf("%+v %v", files, err)
	}
}
