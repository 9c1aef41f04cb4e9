package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/config"
)

// found are the lines about one role that people see at start and in --check.
func found(t *testing.T, config, role string) string {
	t.Helper()
	cfg := mustLoadText(t, config, os.Environ()...)
	var log bytes.Buffer
	app, err := Build(t.Context(), cfg, Options{Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	var lines []string
	for _, line := range app.report.Lines() {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), role); ok {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	if len(lines) != strings.Count(log.String(), "role="+role+" ") {
		t.Errorf("the log says something else than the banner:\n%s\n%s", strings.Join(lines, "\n"), log.String())
	}
	return strings.Join(lines, "\n")
}

// TestLanguageWithoutEngines: what the settings ask for and nobody can hear or say is told at the start.
func TestLanguageWithoutEngines(t *testing.T) {
	const cloud = "providers: {cloud: {type: openai, base_url: 'http://127.0.0.1:9', api_key: k, asr_model: a, tts_model: t}}\n"
	for config, want := range map[string][2]string{ // of which settings it is told, of recogniser and voice
		"server: {language: ja}\nagents: {anna: {language: de, realtime: [live]}}\nproviders: {live: {type: gemini-live, api_key: k}}": {"Japanese (server.language)", "Japanese (server.language)"},
		cloud + "agents: {anna: {language: de, tts: [local, cloud]}, bob: {asr: [cloud]}}\ndevices: {'aa:bb:cc:00:11:22': {language: ko, agent: bob}}\nserver: {language: zh-TW}": {
			"German (agents.anna.language)", "Korean (devices.aa:bb:cc:00:11:22.language)",
		},
	} {
		told := [2]string{found(t, config, "ASR"), found(t, config, "TTS")}
		for i, marker := range [2]string{"no recogniser knows ", "no voice speaks "} {
			if strings.Count(told[i], marker) != 1 || !strings.Contains(told[i], marker+want[i]) {
				t.Errorf("%s: told\n%s\nwant one of %s", config, told[i], want[i])
			}
		}
	}
}

// TestEnvironmentServices: keys in the environment make language models, in
// the order of the README, under their names and with their own addresses.
func TestEnvironmentServices(t *testing.T) {
	for _, c := range []struct {
		name, config string
		env          []string
		want         []string // beginnings of lines, in order; Ollama may be there or not
	}{
		{"nothing", "llm: [auto, rules]", nil, []string{"rules: time"}},
		{"one", "llm: [auto, rules]", []string{"DEEPSEEK_API_KEY"}, []string{"deepseek: deepseek-flash at https://api.deepseek.com", "rules: when all"}},
		{
			"all", "llm: [auto, rules]",
			[]string{"DASHSCOPE_API_KEY", "DEEPSEEK_API_KEY", "OPENAI_API_KEY"},
			[]string{"openai: ", "deepseek: ", "dashscope: ", "rules: when all"},
		},
		{
			"named one comes where it is named", "llm: [dashscope, auto]",
			[]string{"DASHSCOPE_API_KEY", "OPENAI_API_KEY"},
			[]string{"dashscope: ", "openai: "},
		},
		{"named without key", "llm: [openai, rules]", nil, []string{"- openai: left out / 未启用: no key / 没有密钥: $OPENAI_API_KEY", "rules: time"}},
		{"no rules", "llm: [openai]", []string{"OPENAI_API_KEY"}, []string{"openai: "}},
		{"nobody at all", "llm: [openai]", nil, []string{"- openai: left out", "rules: time"}},
		{
			"own section under a known name", "llm: [auto]\nproviders: {deepseek: {type: openai, base_url: 'http://127.0.0.1:1/v1', model: mine}}", nil,
			[]string{"deepseek: mine at http://127.0.0.1:1/v1"},
		},
		{"rules by another name", "llm: [small]\nproviders: {small: {type: rules}}", nil, []string{"rules: time"}},
		{
			"rules by another name, after a model", "llm: [openai, small]\nproviders: {small: {type: rules}}",
			[]string{"OPENAI_API_KEY"},
			[]string{"openai: ", "rules: when all"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range c.env {
				t.Setenv(name, "sk-secret-of-"+name)
			}
			got := found(t, c.config, "LLM")
			rest := got
			for _, want := range c.want {
				i := strings.Index(rest, want)
				if i < 0 || i > 0 && rest[i-1] != '\n' {
					t.Fatalf("no line %q in this order in\n%s", want, got)
				}
				rest = rest[i+len(want):]
			}
			if strings.Contains(got, "sk-secret") {
				t.Errorf("a key is shown:\n%s", got)
			}
		})
	}
}

// TestMembersLeftOut: a member without its key or its program is left out, with
// one line that says why, and the others are used.
func TestMembersLeftOut(t *testing.T) {
	for _, c := range []struct{ name, config, role, want string }{
		{
			"key not set", "asr: [a, pocketsphinx]\nproviders: {a: {type: openai, model: m, api_key: '${NO_SUCH_KEY}'}}", "ASR",
			"- a: left out / 未启用: no key / 没有密钥: $NO_SUCH_KEY\npocketsphinx: English, offline",
		},
		{
			"no key at the usual address", "asr: [a, pocketsphinx]\nproviders: {a: {type: openai, model: m}}", "ASR",
			"- a: left out / 未启用: no key / 没有密钥: providers.a.api_key\npocketsphinx: English, offline",
		},
		{"no key at home", "llm: [a]\nproviders: {a: {type: openai, model: m, base_url: 'http://127.0.0.1:1/v1'}}", "LLM", "a: m at http://127.0.0.1:1/v1"},
		{"key in a header", "llm: [a]\nproviders: {a: {type: openai, model: m, headers: {api-key: k}}}", "LLM", "a: m at https://api.openai.com/v1"},
		{"no Chinese recogniser", "asr: [pocketsphinx]", "ASR", "zipformer-zh, and asr: [sherpa] / 没有配置中文语音识别"},
		{"no such voice", "tts: [a, local]\nproviders: {a: {type: local, voice: {en: nobody}}}", "TTS", "- a: left out"},
		{"secret in an address", "llm: [a]\nproviders: {a: {type: openai, model: m, base_url: 'http://me:hunter2@127.0.0.1:1/v1?key=hunter2'}}", "LLM", "a: m at http://127.0.0.1:1/v1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := found(t, c.config, c.role)
			if !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is shown: %s", got)
			}
		})
	}
}

// TestUnknownPrompt: else every turn would fail.
func TestUnknownPrompt(t *testing.T) {
	cfg := mustLoadText(t, "agent: {prompt: pirate}")
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	if app, err := Build(t.Context(), cfg, Options{Data: dir, Log: log}); err == nil {
		app.Close()
		t.Error("no error")
	} else {
		inOrder(t, err.Error(), "agent.prompt", `"pirate"`, "default", "pirate.zh.md", filepath.Join(dir, "prompts"), "没有")
	}
	if err := os.Mkdir(filepath.Join(dir, "prompts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "prompts", "pirate.en.md"), []byte("Arr, {{assistant_name}}!"), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := Build(t.Context(), cfg, Options{Data: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	app.Close()
	if err := os.WriteFile(filepath.Join(dir, "prompts", "pirate.zh.md"), []byte("x\n{{assistant_nam}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), cfg, Options{Data: dir, Log: log}); err == nil || !strings.Contains(err.Error(), "pirate.zh.md:2") || !strings.Contains(err.Error(), "assistant_name") {
		t.Errorf("a misspelt variable: %v", err)
	}
}

// TestLeftOutEndsWell: an engine that could not be made is told with its place, and nothing of it is closed at the end.
func TestLeftOutEndsWell(t *testing.T) {
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, []string{"hook", "rules"}
	cfg.Providers = map[string]config.Provider{"hook": {Type: "n8n", Place: "config.yaml:3"}}
	a, err := Build(t.Context(), cfg, Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	a.Report(&told)
	a.Close()
	if !strings.Contains(told.String(), "- hook: left out / 未启用: config.yaml:3: ") {
		t.Errorf("%s", told.String())
	}
}
