package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/config"
	"xiaozhi/internal/homeassistant"
	"xiaozhi/internal/version"
)

const appFolder = "../../deploy/homeassistant/xiaozhi"

// homeAssistantApp is what we use of an app's config.yaml, by the rules of Home Assistant's supervisor (supervisor/apps/validate.py and
// options.py). It ignores other keys without a word; here they are an error.
type homeAssistantApp struct {
	Name, Version, Slug, Description, URL, Startup, Boot, Webui, Watchdog, Backup, Stage string
	Arch                                                                                 []string
	Init                                                                                 *bool
	HostNetwork                                                                          bool `yaml:"host_network"`
	Options, Schema                                                                      map[string]any
}

// appElement is what an option may be.
var appElement = regexp.MustCompile(`^(?:|bool|email|url|port|device(?:\(subsystem=[a-z]+\))?|(?:str|password)(?:\(\d*,\d*\))?|int(?:\(-?\d*,-?\d*\))?|float(?:\(-?\d*\.?\d*,-?\d*\.?\d*\))?|match\(.*\)|list\(.+\))\??$`)

func decodeApp(t *testing.T, file string, to any) {
	t.Helper()
	f, err := os.Open(filepath.Join(appFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(to); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// checkAppSchema checks an option of the schema, and of lists and maps in it all.
func checkAppSchema(t *testing.T, name string, v any, nested bool) {
	t.Helper()
	switch v := v.(type) {
	case string:
		if !appElement.MatchString(v) {
			t.Errorf("schema: %s is %q, which is no kind of option", name, v)
		}
	case []any:
		if nested || len(v) != 1 {
			t.Errorf("schema: %s is a list of %d kinds, or in a list", name, len(v))
			return
		}
		checkAppSchema(t, name, v[0], true)
	case map[string]any:
		for key, of := range v {
			checkAppSchema(t, name+"."+key, of, false)
		}
	default:
		t.Errorf("schema: %s is a %T", name, v)
	}
}

// TestHomeAssistantApp: the app is one by the supervisor's rules, is of this version, and opens the console; every option that its
// page has is understood by the server, has a default unless it may be missing, and is told of in both languages.
func TestHomeAssistantApp(t *testing.T) {
	var a homeAssistantApp
	decodeApp(t, "config.yaml", &a)
	for name, ok := range map[string]bool{
		"name": a.Name != "", "description": a.Description != "", "slug": regexp.MustCompile(`^[-_.A-Za-z0-9]+$`).MatchString(a.Slug),
		"version": a.Version == version.Number(), "arch": slices.Equal(a.Arch, []string{"amd64", "aarch64"}),
		"startup": slices.Contains([]string{"initialize", "system", "services", "application", "once"}, a.Startup),
		"boot":    slices.Contains([]string{"auto", "manual", "manual_only"}, a.Boot), "backup": a.Backup == "cold",
		"stage": slices.Contains([]string{"stable", "experimental", "deprecated"}, a.Stage), "host_network": a.HostNetwork,
		"webui":    regexp.MustCompile(`^(?:https?|\[PROTO:\w+\])://\[HOST\]:\[PORT:\d+\].*$`).MatchString(a.Webui) && strings.HasSuffix(a.Webui, "/console/"),
		"watchdog": regexp.MustCompile(`^(?:https?|\[PROTO:\w+\]|tcp)://\[HOST\]:(\[PORT:\d+\]|\d+).*$`).MatchString(a.Watchdog),
	} {
		if !ok {
			t.Errorf("config.yaml: %s is missing or wrong", name)
		}
	}
	known := homeassistant.Options()
	if got := slices.Sorted(maps.Keys(a.Schema)); !slices.Equal(got, known) {
		t.Errorf("the page has the options %q, the server understands %q", got, known)
	}
	for name, v := range a.Schema {
		checkAppSchema(t, name, v, false)
		if kind, ok := v.(string); !ok || !strings.HasSuffix(kind, "?") {
			if _, ok := a.Options[name]; !ok {
				t.Errorf("%s must be there and has no default", name)
			}
		}
	}
	for _, lang := range []string{"en", "zh-Hans"} {
		var words struct {
			Configuration map[string]struct{ Name, Description string }
		}
		decodeApp(t, "translations/"+lang+".yaml", &words)
		if got := slices.Sorted(maps.Keys(words.Configuration)); !slices.Equal(got, known) {
			t.Errorf("%s tells of %q, want %q", lang, got, known)
		}
	}
}

// TestHomeAssistantSettings: the defaults of the page, and each choice of its lists, are settings that the server accepts.
func TestHomeAssistantSettings(t *testing.T) {
	var a homeAssistantApp
	decodeApp(t, "config.yaml", &a)
	try := func(options map[string]any) {
		text, err := json.Marshal(options)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "options.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		env, err := homeassistant.Environment(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := config.Load(config.Options{File: "../../config.yaml", Env: env}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	try(a.Options)
	for name, kind := range a.Schema {
		text := fmt.Sprint(kind)
		if list, ok := strings.CutPrefix(text, "list("); ok {
			for choice := range strings.SplitSeq(strings.TrimRight(list, ")?"), "|") {
				options := maps.Clone(a.Options)
				options[name] = choice
				try(options)
			}
		}
	}
}

// TestCheckHomeAssistant: what stands on the page of the app in Home Assistant is checked as all settings are.
func TestCheckHomeAssistant(t *testing.T) {
	dir := t.TempDir()
	for options, want := range map[string]string{
		`{"langage":"zh"}`: "langage",
		`{"environment":[{"name":"XIAOZHI_LOG__LEVEL","value":"loud"}]}`: "log.level",
	} {
		file := filepath.Join(dir, "options.json")
		if err := os.WriteFile(file, []byte(options), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		if code := run(t.Context(), []string{"serve", "--check", "--data", dir, "--homeassistant", file}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: code %d, %s", options, code, stderr.String())
		}
	}
}
