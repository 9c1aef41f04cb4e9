package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCheckSettings gives serve --check the usual mistakes. Each is named with its
// place, on stderr, and secrets are printed nowhere.
func TestCheckSettings(t *testing.T) {
	const secret = "sk-Xy7secretXy7"
	for name, c := range map[string]struct {
		config string // of config.yaml
		env    []string
		args   []string
		code   int
		stdout []string
		stderr []string
	}{
		"no file":  {stdout: []string{"the settings are fine", "VAD", "ASR", "LLM", "TTS"}},
		"comments": {config: "# nothing is set here\n", stdout: []string{"the settings are fine"}},
		"good": {
			config: "server: {language: en, timezone: Europe/Berlin}\nvoice: {idle_close: 60s}\ndevices: {\"24:6F:28:AA:10:02\": {name: kitchen}}\n",
			stdout: []string{"the settings are fine"},
		},
		"tabs": {config: "server:\n\tlanguage: zh\n", code: 1, stderr: []string{"config.yaml:2", "tab"}},
		"unknown key": {
			config: "server:\n  public_url: \"\"\n  langage: zh\n", code: 1,
			stderr: []string{"config.yaml:3", "server.langage", "server.language"},
		},
		"two mistakes": {config: "sever: {}\nlog:\n  lvl: info\n", code: 1, stderr: []string{"config.yaml:1", "server", "config.yaml:3", "log.level"}},
		"wrong value":  {config: "log:\n  level: loud\n", code: 1, stderr: []string{"config.yaml:2", "log.level", "loud", "debug, info, warn, error"}},
		"unknown type": {
			config: "llm: [mine]\nproviders:\n  mine:\n    type: opnai\n", code: 1,
			stderr: []string{"config.yaml:4", "opnai", "openai"},
		},
		"no such section": {config: "tts: [local, mine]\n", code: 1, stderr: []string{"config.yaml:1", "mine"}},
		"key not set": {
			config: "llm: [mine, rules]\nproviders: {mine: {type: openai, model: m, api_key: \"${NO_SUCH_KEY}\"}}\n",
			env:    []string{"XIAOZHI_LLM=mine,rules"},
			stdout: []string{"mine", "left out", "NO_SUCH_KEY", "the settings are fine"},
		},
		"no voice": {config: "tts: [iflytek]\n", stdout: []string{"IFLYTEK_API_KEY", "no voice can be used"}},
		"key set": {
			config: "providers: {mine: {type: openai, model: m, base_url: \"http://127.0.0.1:1/v1\", api_key: \"${MY_KEY}\"}}\n",
			env:    []string{"XIAOZHI_LLM=mine,rules", "MY_KEY=" + secret},
			stdout: []string{"mine: m at http://127.0.0.1:1/v1", "the settings are fine"},
		},
		"secret beside a mistake": {
			config: "auth: {enabled: true, token: " + secret + "}\nproviders: {mine: {type: openai, api_key: " + secret + ", api_kee: " + secret + "}}\n",
			code:   1, stderr: []string{"config.yaml:2", "api_kee"},
		},
		"secret of a wrong kind": {config: "auth: {enabled: true, token: [" + secret + "]}\n", code: 1, stderr: []string{"config.yaml:1", "auth.token"}},
		"auth without token":     {config: "auth:\n  enabled: true\n", code: 1, stderr: []string{"config.yaml:2", "auth.token"}},
		"auth by variable":       {env: []string{"XIAOZHI_AUTH__ENABLED=true"}, code: 1, stderr: []string{"XIAOZHI_AUTH__ENABLED", "auth.token"}},
		"unknown variable":       {env: []string{"XIAOZHI_SERVER__LISTN=:1"}, code: 1, stderr: []string{"XIAOZHI_SERVER__LISTN", "listen"}},
		"value of a variable":    {env: []string{"XIAOZHI_VOICE__IDLE_CLOSE=soon"}, code: 1, stderr: []string{"XIAOZHI_VOICE__IDLE_CLOSE", "soon"}},
		"file that is not there": {args: []string{"--config", "nowhere.yaml"}, code: 1, stderr: []string{"nowhere.yaml"}},
		"unknown flag":           {args: []string{"--cheque"}, code: 2, stderr: []string{"cheque"}},
		"too many words":         {args: []string{"now"}, code: 2, stderr: []string{"now"}},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t)
			dir := t.TempDir()
			t.Chdir(dir)
			for _, variable := range c.env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			if c.config != "" {
				if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, out, errs := runMain(t, slices.Concat([]string{"serve", "--check"}, c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.stdout {
				if !strings.Contains(out, want) {
					t.Errorf("stdout lacks %q", want)
				}
			}
			for _, want := range c.stderr {
				if !strings.Contains(errs, want) {
					t.Errorf("stderr lacks %q", want)
				}
			}
			if strings.Contains(out+errs, secret) {
				t.Error("a secret was printed")
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 1 {
				t.Errorf("--check left files behind: %v, %v", entries, err)
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", out, errs)
			}
		})
	}
}
