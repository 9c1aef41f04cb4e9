package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configured runs the subcommand.
func configured(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = configMain(t.Context(), args, &out, &errs)
	return code, out.String() + errs.String()
}

// put writes a file of a test.
func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestConfigOfFolder looks at a data folder and changes it while no server runs, and carries all of it to another one.
func TestConfigOfFolder(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	t.Setenv("KEY", "k-of-the-environment")
	put(t, ".", "config.yaml", "server: {listen: ['127.0.0.1:1']}\nproviders: {mine: {type: openai, base_url: 'https://one.example/v1', api_key: '${KEY}', model: m}}\nvoice: {idle_close: 50s}\n")
	put(t, "data", "config.yaml", "voice: {barge_in: 400ms}\nagent: {max_steps: 4}\n")
	change := put(t, ".", "change.yaml", "agent: {name: Momo, max_steps: 9}\nllm: [second, mine, rules]\nproviders: {second: {type: openai, base_url: 'https://two.example/v1', api_key: sk-planted-0123, model: m}}\nserver: {max_devices: 3}\n")
	wrong := put(t, ".", "wrong.yaml", "voice: {idle_close: soon, barge_inn: 3s}\n")
	for _, test := range []struct {
		line string
		code int
		want string
	}{
		{"show idle_close --origin", 0, "voice.idle_close = 50s    # config.yaml:3\n"},
		{"import change.yaml --check", 0, "agent.name: "},
		{"show agent.name --origin", 0, "# default\n"},
		{"import change.yaml", 0, "server.max_devices: this is set in a file"},
		{"show agent --origin", 0, "agent.name = Momo    # console#1\n"},
		{"show agent.max_steps --origin", 0, "agent.max_steps = 4    # data/config.yaml:2\n"},
		{"import change.yaml", 1, "of that, nothing can be set here: agent.max_steps, server.max_devices"},
		{"import wrong.yaml", 1, "voice.barge_inn"},
		{"import nowhere.yaml", 1, "nowhere.yaml"},
		{"export", 0, "name: Momo"},
		{"export", 0, "api_key: ${KEY}"},
		{"export", 0, "api_key: sealed:console.second.api_key-"},
		{"show --json", 0, `"key":"agent.name"`},
		{"import", 2, "usage"},
		{"export --secrets all", 2, "usage"},
		{"print", 2, "export, import, show"},
		{"export --secrets plain --server http://127.0.0.1:1", 1, "gives no secrets away"},
	} {
		code, said := configured(t, strings.Fields(test.line)...)
		if code != test.code || !strings.Contains(said, test.want) || strings.Contains(said, "planted") {
			t.Errorf("%q: exit %d: %s", test.line, code, said)
		}
	}
	if code, out, _ := runMain(t, "services", "list"); code != 0 || !strings.Contains(out, "second") {
		t.Errorf("other commands do not know of it: %d %s", code, out)
	}
	_, before := configured(t, "show")
	_, doc := configured(t, "export", "--secrets", "plain")
	if !strings.Contains(doc, "sk-planted-0123") || !strings.Contains(doc, "k-of-the-environment") {
		t.Error(doc)
	}
	for _, data := range []string{change, wrong} {
		if err := os.Remove(data); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	put(t, ".", "config.yaml", doc)
	if _, after := configured(t, "show"); after != before || strings.Count(after, "\n") < 80 {
		t.Errorf("another server has other values:\n%s\nand not\n%s", after, before)
	}
	if code, _, said := runMain(t, "serve", "--check"); code != 0 {
		t.Error(said)
	}
}

// TestConfigOfServer asks a server that runs, which keeps what was imported.
func TestConfigOfServer(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	base, end := serving(t, "voice: {idle_close: 50s}\n")
	change := put(t, t.TempDir(), "change.yaml", "agent: {name: Momo}\n")
	for _, test := range []struct {
		line string
		want string
	}{
		{"show voice.idle_close --origin", "voice.idle_close = 50s    # "},
		{"import --check " + change, "agent.name: "},
		{"import " + change, "read in as revision 1"},
		{"show agent.name --origin", "agent.name = Momo    # console#1"},
		{"export", "name: Momo"},
	} {
		if code, said := configured(t, append([]string{"--server", base}, strings.Fields(test.line)...)...); code != 0 || !strings.Contains(said, test.want) {
			t.Errorf("%q: exit %d: %s", test.line, code, said)
		}
	}
	if code, said := configured(t, "import", change); code != 1 || !strings.Contains(said, "--server") {
		t.Errorf("beside a server that was not asked: exit %d: %s", code, said)
	}
	if code := end(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	if code, said := configured(t, "show", "agent.name"); code != 0 || !strings.Contains(said, "Momo") {
		t.Errorf("it is gone with the server: %d %s", code, said)
	}
}

// TestFileNamesServiceOfConsole: what counts before the console may name what is set there; without it, it is told what is missing.
func TestFileNamesServiceOfConsole(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	put(t, ".", "config.yaml", "server: {listen: ['127.0.0.1:1']}\n")
	put(t, ".", "change.yaml", "providers: {second: {type: openai, base_url: 'http://127.0.0.1:1/v1', api_key: sk-planted-0123, model: m}}\n")
	put(t, "data", "config.yaml", "# nothing yet\n")
	if code, said := configured(t, "import", "change.yaml"); code != 0 {
		t.Fatal(said)
	}
	put(t, "data", "config.yaml", "llm: [second, rules]\nagents: {a: {llm: [second]}}\n")
	if code, out, said := runMain(t, "serve", "--check"); code != 0 {
		t.Errorf("exit %d: %s%s", code, out, said)
	}
	if code, said := configured(t, "show", "llm", "--origin"); code != 0 || !strings.Contains(said, `llm = ["second","rules"]    # data/config.yaml:1`) {
		t.Errorf("exit %d: %s", code, said)
	}
	if code, _, said := runMain(t, "serve", "--check", "--no-console-settings"); code != 1 || !strings.Contains(said, "second") {
		t.Errorf("exit %d: %s", code, said)
	}
	if err := os.Remove("data/xiaozhi.db"); err != nil {
		t.Fatal(err)
	}
	if code, _, said := runMain(t, "serve", "--check"); code != 1 || !strings.Contains(said, "data/config.yaml:1: llm") {
		t.Errorf("exit %d: %s", code, said)
	}
}
