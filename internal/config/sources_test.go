package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/text"
)

// layered reads a file, the data folder's file and an environment.
func layered(t *testing.T, file, own string, environ ...string) *Sources {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"base.yaml": file, "config.yaml": own} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Read(Options{File: filepath.Join(dir, "base.yaml"), DataDir: dir, Env: environ})
}

func TestConsoleLayer(t *testing.T) {
	s := layered(t, "voice: {idle_close: 50s, barge_in: 300ms}\nllm: [rules]\n", "voice: {barge_in: 400ms}\n", "XIAOZHI_AGENT__NAME=Env")
	c, _, err := s.Load(Layer{7, []byte(`{"voice":{"idle_close":"60s","barge_in":"500ms","loudness":false},"agent":{"name":"Console","max_steps":3}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if c.Voice.IdleClose.Seconds() != 60 || c.Voice.BargeIn.Milliseconds() != 400 || c.Voice.Loudness || c.Agent.Name != "Env" || c.Agent.MaxSteps != 3 {
		t.Errorf("%+v %+v", c.Voice, c.Agent)
	}
	for key, want := range map[string]Layers{
		"voice.idle_close": LayerConsole, "voice.barge_in": LayerOwnFile, "agent.name": LayerEnvironment, "llm": LayerFile, "asr": LayerDefault,
	} {
		path := strings.Split(key, ".")
		i := slices.IndexFunc(c.Values(), func(v Value) bool { return v.Key() == key })
		if got := c.Values()[i].Origin; got.Layer != want || (got.Place == "") != (want == LayerDefault) {
			t.Errorf("%s is of %v, want %v", key, got, want)
		}
		if pinned := c.PinnedAt(path).Layer > LayerConsole; pinned != (want > LayerConsole) {
			t.Errorf("%s is pinned: %v", key, pinned)
		}
	}
	if place := c.OriginOf([]string{"voice", "idle_close"}).Place; place != "console#7" {
		t.Error(place)
	}
	before, _, _ := s.Load(Layer{})
	var keys []string
	for _, change := range c.Compare(before) {
		keys = append(keys, change.Key())
	}
	if want := []string{"agent.max_steps", "voice.idle_close", "voice.loudness"}; !slices.Equal(keys, want) {
		t.Errorf("changes %v", keys)
	}
}

// TestConsoleMayNot holds the layer of the console to what may be set there: no files, no variables, no programs, nothing
// that the server is built of.
func TestConsoleMayNot(t *testing.T) {
	s := layered(t, "providers:\n  mine: {type: openai, base_url: 'https://one.example/v1', api_key: '${KEY}', model: m}\n", "", "KEY=sk-secret")
	for doc, want := range map[string]string{
		`{"server":{"listen":[":1"]}}`:                                                 "server.listen",
		`{"store":{"url":"postgres://x"}}`:                                             "store.url",
		`{"auth":{"pairing":"open"}}`:                                                  "auth.pairing",
		`{"agents":{"a":{"voice":"x"}}}`:                                               "agents.a.voice",
		`{"tools":{"music":{"dir":"/etc"}}}`:                                           "tools.music.dir",
		`{"providers":{"x":{"type":"openai","api_key_file":"/etc/passwd"}}}`:           "providers.x.api_key_file",
		`{"providers":{"x":{"type":"openai","model":"${HOME}"}}}`:                      "providers.x.model",
		`{"providers":{"x":{"type":"sherpa","library":"/tmp/any.so"}}}`:                "providers.x.library",
		`{"providers":{"x":{"type":"sherpa","folder":"/tmp"}}}`:                        "providers.x.folder",
		`{"providers":{"x":{"type":"cosyvoice","prompt_wav":"/etc/passwd"}}}`:          "providers.x.prompt_wav",
		`{"providers":{"mine":{"base_url":"https://evil.example/v1"}}}`:                "providers.mine.api_key",
		`{"tools":{"external":{"mcpServers":{"x":{"command":"sh"}}}}}`:                 "tools.external.mcpServers.x.command",
		`{"providers":{"x":{"type":"openai","base_url":"http://169.254.169.254/v1"}}}`: "providers.x.base_url",
		`{"providers":{"x":{"type":"openai","proxy":"http://2852039166:80"}}}`:         "providers.x.proxy",
		`{"voice":{"idle_closed":"1s"}}`:                                               "voice.idle_close",
		`{"voice":{"idle_close":"1s","opus":{"bitrate":5}}}`:                           "voice.opus.bitrate",
		`{"llm":["nobody"]}`:                                                           "llm",
		`[1]`:                                                                          "",
	} {
		_, _, err := s.Load(Layer{Doc: []byte(doc)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: %v", doc, err)
		}
	}
	if _, _, err := s.Load(Layer{Doc: []byte(`{"store":{"keep_days":3},"providers":{"mine":{"model":"n"}},"voice":{}}`)}); err != nil {
		t.Error(err)
	}
}

// TestSourcesStay tells that a file that was written to since counts at the next start only.
func TestSourcesStay(t *testing.T) {
	file := writeFile(t, "config.yaml", "agent: {name: One}\n")
	s := Read(Options{File: file})
	if err := os.WriteFile(file, []byte("agent: {name: Two}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := s.Load(Layer{})
	if err != nil || c.Agent.Name != "One" {
		t.Error(c, err)
	}
}

// TestExportIsTheSame loads what was exported as the only file: all values are the same.
func TestExportIsTheSame(t *testing.T) {
	environ := []string{"XIAOZHI_AGENT__NAME=Env", "KEY=k-of-the-environment", "XIAOZHI_SERVER__LISTEN=127.0.0.1:1"}
	s := layered(t, "providers:\n  mine: {type: openai, base_url: 'http://127.0.0.1/v1', api_key: '${KEY}', headers: {X-A: 'written here'}, voice: alloy, model: m, extra: {a: {b: [1, two]}}}\n  two: {type: openai, base_url: 'http://127.0.0.1/v1', voice: {zh: a, en: b}, api_key: plain}\nmcp: {tokens: [{name: a, token: 0123456789abcdef, rate: 3}]}\nrecording: {quota: 3GiB}\n",
		"voice: {barge_in: 400ms}\ndevices: {'24:6F:28:AA:10:02': {name: kitchen}}\n", environ...)
	c, _, err := s.Load(Layer{1, []byte(`{"llm":["mine","rules"],"voice":{"idle_close":"61s","vad":{"start":0.6}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	tree, left := c.Tree(true)
	doc, err := JSON(tree)
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	alone := func(doc []byte) *Config {
		t.Helper()
		again, _, err := Load(Options{File: writeFile(t, "config.yaml", string(doc)), DataDir: t.TempDir(), Env: []string{"KEY=k-of-the-environment"}})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	if diff := alone(doc).Compare(c); len(diff) > 0 {
		t.Errorf("%s\ndiffers in %+v", doc, diff)
	}
	tree, left = c.Tree(false)
	if want := []string{"mcp.tokens.0.token", "providers.mine.headers.X-A", "providers.two.api_key"}; !slices.Equal(left, want) {
		t.Errorf("left out %v", left)
	}
	tree["mcp"] = nil // its token would be missing
	if doc, err = JSON(tree); err != nil || strings.Contains(string(doc), "plain") || !strings.Contains(string(doc), "${KEY}") {
		t.Fatal(string(doc), err)
	}
	for _, change := range alone(doc).Compare(c) {
		if !change.Secret && change.Path[0] != "mcp" {
			t.Errorf("%+v", change)
		}
	}
}

func TestSentences(t *testing.T) {
	for _, v := range Default().Values() {
		english, chinese := Sentence(v.Path, text.English), Sentence(v.Path, text.Chinese)
		if english == "" || chinese == "" {
			t.Errorf("nothing is said of %s: %q %q", v.Key(), english, chinese)
		}
	}
	if got := Sentence([]string{"voice", "idle_close"}, text.English); !strings.HasPrefix(got, "Silence") && got == "" {
		t.Error(got)
	}
}
