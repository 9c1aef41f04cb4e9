package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"xiaozhi/providers"
)

// loadText loads one file of the given text, without the data folder.
func loadText(t *testing.T, text string, environ ...string) (*Config, error) {
	t.Helper()
	c, _, err := Load(Options{File: writeFile(t, "config.yaml", text), Env: environ})
	return c, err
}

func mustLoadText(t *testing.T, text string, environ ...string) *Config {
	t.Helper()
	c, err := loadText(t, text, environ...)
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

// unread returns settings without what they were read from.
func unread(c *Config) *Config {
	c.around.read = nil
	return c
}

func TestNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	c, warnings, err := Load(Options{DataDir: "data"})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if !reflect.DeepEqual(unread(c), Default()) {
		t.Errorf("got  %+v\nwant %+v", c, Default())
	}
}

func TestEmptyFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n", "comments": "# nothing\n", "null": "~\n", "dashes": "---\n", "BOM": "\ufeff# x\n",
		"empty sections": "server:\nauth:\nasr:\nvoice:\n  vad:\n", "empty map": "{}", "empty map of devices": "devices: {}",
	} {
		if c := mustLoadText(t, text); !reflect.DeepEqual(unread(c), Default()) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestShippedFile holds config.yaml to its word: its values are the defaults,
// and every key there is stands in it.
func TestShippedFile(t *testing.T) {
	const file = "../../config.yaml"
	c, _, err := Load(Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(unread(c), Default()) {
		t.Errorf("got  %+v\nwant %+v", c, Default())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range allKeys(configType()) {
		if !strings.Contains(string(data), key+":") {
			t.Errorf("%s is not in config.yaml", key)
		}
	}
	if strings.ContainsRune(string(data), '\t') {
		t.Error("config.yaml holds a tab")
	}
}

// TestShippedExamples loads the examples that stand in comments.
func TestShippedExamples(t *testing.T) {
	data, err := os.ReadFile("../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		if example, ok := strings.CutPrefix(line, "#   "); ok {
			text.WriteString(example)
		}
	}
	c := mustLoadText(t, text.String(), "MY_API_KEY=k")
	p, d := c.Providers["myservice"], c.Devices.ByID["24:6f:28:aa:10:02"]
	if p.APIKey != "k" || p.Voice.For("zh") != "anna" || p.Decoders != 2 || d.Name != "kitchen" || len(d.Tools.Deny) != 1 {
		t.Errorf("provider %+v, device %+v", p, d)
	}
	if w := c.Tools.Weather; w.City != "北京" || w.Headers["X-Api-Key"] != "k" || c.Tools.News.URL == "" {
		t.Errorf("weather %+v, news %+v", w, c.Tools.News)
	}
}

// allKeys lists the keys of a type and of all that it holds.
func allKeys(t reflect.Type) []string {
	for t.Kind() == reflect.Map || t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var keys []string
	for _, name := range childNames(t) {
		child, _ := childType(t, name)
		keys = append(append(keys, name), allKeys(child)...)
	}
	return keys
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"config.yaml":      "server: {timezone: Europe/Berlin, listen: [':1', ':2']}\nproviders:\n  Mine: {type: openai, model: a, api_key: k, voice: {zh: x, en: y}}\nagent: {name: One}\ntools: {kinds: {self.lamp.on: control}}\n",
		"data/config.yaml": "server: {listen: [':3']}\nproviders:\n  Mine: {model: b, voice: v}\ntools: {kinds: {self.lamp.off: query}}\nllm: [Mine, rules]\n",
		"other.yaml":       "agent: {name: Other}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load := func(o Options) *Config {
		t.Helper()
		c, _, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load(Options{DataDir: "data"})
	p := c.Providers["Mine"]
	if p.Type != "openai" || p.Model != "b" || p.APIKey != "k" || p.Voice.For("zh") != "v" || p.Voice.For("en") != "v" {
		t.Errorf("maps are not merged: %+v", p)
	}
	if !reflect.DeepEqual(c.Server.Listen, []string{":3"}) || c.Server.Timezone != "Europe/Berlin" || c.Agent.Name != "One" {
		t.Errorf("server %+v, agent %+v", c.Server, c.Agent)
	}
	if len(c.Tools.Kinds) != 2 || c.Tools.Kinds["self.lamp.off"] != "query" {
		t.Errorf("kinds %v", c.Tools.Kinds)
	}
	c = load(Options{DataDir: "data", Env: []string{"XIAOZHI_SERVER__LISTEN=:4, :5", "xiaozhi_providers__mine__model=c", "XIAOZHI_AGENT__NAME=Env"}})
	if !reflect.DeepEqual(c.Server.Listen, []string{":4", ":5"}) || c.Providers["Mine"].Model != "c" || c.Agent.Name != "Env" || len(c.Providers) != 1 {
		t.Errorf("environment: %+v", c)
	}
	c = load(Options{DataDir: "data", Env: []string{"XIAOZHI_SERVER__LISTEN=:4"}, Listen: []string{"127.0.0.1:0"}})
	if !reflect.DeepEqual(c.Server.Listen, []string{"127.0.0.1:0"}) {
		t.Errorf("command line: %v", c.Server.Listen)
	}
	if c = load(Options{File: "other.yaml"}); c.Agent.Name != "Other" || len(c.Providers) != 0 {
		t.Errorf("another file does not stand in for config.yaml: %+v", c)
	}
	if _, _, err := Load(Options{File: "none.yaml"}); err == nil || !strings.Contains(err.Error(), "none.yaml: cannot be read") {
		t.Errorf("a file that was asked for and is not there: %v", err)
	}
}

func TestValueKinds(t *testing.T) {
	c := mustLoadText(t, `
auth: {enabled: true, token: 1234567890123456}
providers:
  a: {type: openai, voice: 7, temperature: 0, extra: {a: {b: [1, true, x]}}, headers: {X-Key: "${K}"}, first_token: 2s, first_sound: 3s, transcript: 4s}
  b: {type: openai, voice: {en: john, ja_JP: hana, pt-PT: rui}}
devices: {"24:6F:28:AA:10:02": {name: Kitchen, language: ja-JP}}
server: {language: de-AT}
agents: {anna: {language: ko}}
voice: {idle_close: 1m30s, vad: {start: 1e-1, end: 0.1}}
`, "K=v")
	a, b := c.Providers["a"], c.Providers["b"]
	want := map[string]any{"a": map[string]any{"b": []any{1, true, "x"}}}
	if c.Auth.Token != "1234567890123456" || a.Voice.For("zh") != "7" || a.Temp == nil || *a.Temp != 0 || !reflect.DeepEqual(a.Extra, want) {
		t.Errorf("auth %v, a %+v", c.Auth.Enabled, a)
	}
	if a.Headers["X-Key"] != "v" || a.FirstToken != 2*time.Second || a.FirstSound != 3*time.Second || a.Transcript != 4*time.Second || b.Temp != nil {
		t.Errorf("a %+v, b %+v", a, b)
	}
	if b.Voice.For("en") != "john" || b.Voice.For("zh") != "" || b.Voice.For("ja") != "hana" || b.Voice.For("pt") != "rui" || b.Voice.For("en-GB") != "john" {
		t.Errorf("voices %v", b.Voice)
	}
	if c.Devices.ByID["24:6f:28:aa:10:02"].Name != "Kitchen" || c.Voice.IdleClose != 90*time.Second || c.Voice.VAD.Start != 0.1 {
		t.Errorf("devices %v, voice %+v", c.Devices, c.Voice)
	}
}

func TestSecretsHidden(t *testing.T) {
	c := mustLoadText(t, "auth: {enabled: true, token: hunter2-and-his-friends}")
	if text := strings.Join([]string{c.Auth.Token.String(), providers.Secret("x").GoString()}, ""); strings.Contains(text, "hunter2") {
		t.Error(text)
	}
	_, err := loadText(t, "auth: {enabled: true, token: hunter2, tokn: hunter3}\nproviders: {a: {api_key: [hunter4]}}")
	if err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("an error shows a secret: %v", err)
	}
}

func TestAllProblemsJoined(t *testing.T) {
	_, err := loadText(t, "sever: {}\nlog: {level: 1, fromat: x}\nvoice: {idle_close: 5}\n", "XIAOZHI_AGENT__MAX_STEPS=x")
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 5 {
		t.Fatalf("want 5 problems (the level is one), got %v", err)
	}
	for _, one := range joined.Unwrap() {
		p, ok := errors.AsType[*Error](one)
		if !ok || p.Place == "" || p.English == "" || p.Chinese == "" {
			t.Errorf("not a full problem: %v", one)
		}
	}
}

func FuzzLoadConfig(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range append(files, "../../config.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, _, err := Load(Options{File: file})
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err != nil && strings.Contains(err.Error(), "decode settings") {
			t.Fatalf("a mistake was seen only by the decoder: %v", err)
		}
	})
}

// TestDevices: a section of free names that has a key of its own, by file and by variable.
func TestDevices(t *testing.T) {
	c := mustLoadText(t, "devices:\n  unknown: refuse\n  24-6F-28-AA-10-02: {name: Kitchen}\n", "XIAOZHI_DEVICES__UNKNOWN=all", "XIAOZHI_AUTH__PAIRING=ask")
	if c.Devices.Unknown != "all" || c.Auth.Pairing != "ask" || len(c.Devices.ByID) != 1 || c.Devices.ByID["24:6f:28:aa:10:02"].Name != "Kitchen" {
		t.Errorf("%+v, %+v", c.Devices, c.Auth)
	}
	if shown := string(c.Redacted()); !strings.Contains(shown, `"unknown":"all"`) || !strings.Contains(shown, "Kitchen") {
		t.Errorf("shown: %s", shown)
	}
}
