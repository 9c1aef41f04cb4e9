package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"xiaozhi/prompts"
)

func TestEnvironment(t *testing.T) {
	c := mustLoadText(t, "llm: [rules]\nmcp: {tokens: [{name: a, token: t0ken-of-the-laptop}]}\n",
		"PATH=/bin", "XIAOZHI_AUTH__ENABLED=true", "XIAOZHI_AUTH__TOKEN=a=b: c # d, 16 and more",
		"Xiaozhi_Voice__Idle_Close=90s", "XIAOZHI_VOICE__VAD__START=0.6", "XIAOZHI_AGENT__MAX_STEPS= 7 ",
		"XIAOZHI_AGENT__WAKE_WORDS=hey,  you ,", "XIAOZHI_ASR=openai, pocketsphinx", "XIAOZHI_REALTIME=openai-realtime,auto", "OPENAI_API_KEY=k", "XIAOZHI_SERVER__PUBLIC_URL=https://a.example.org",
		"XIAOZHI_PROVIDERS__NEW__TYPE=openai", "XIAOZHI_PROVIDERS__NEW__EXTRA={top_k: 3}", "XIAOZHI_PROVIDERS__NEW__VOICE__ZH=anna",
		"XIAOZHI_PROVIDERS__NEW__TEMPERATURE=0.2", "XIAOZHI_SERVER__LISTEN=", "XIAOZHI_SERVER__LISTEN=127.0.0.1:9000", "broken")
	p := c.Providers["new"]
	if !c.Auth.Enabled || c.Auth.Token != "a=b: c # d, 16 and more" || c.Voice.IdleClose != 90*time.Second || c.Voice.VAD.Start != 0.6 || c.Agent.MaxSteps != 7 {
		t.Errorf("%+v", c)
	}
	if !reflect.DeepEqual(c.Agent.WakeWords, []string{"hey", "you"}) || !reflect.DeepEqual(c.Realtime, []string{"openai-realtime", "auto"}) || !reflect.DeepEqual(c.Server.Listen, []string{"127.0.0.1:9000"}) {
		t.Errorf("lists: %q, %q", c.Agent.WakeWords, c.Server.Listen)
	}
	if p.Type != "openai" || p.Extra["top_k"] != 3 || p.Voice.For("zh") != "anna" || p.Temp == nil || *p.Temp != 0.2 {
		t.Errorf("provider: %+v", p)
	}
}

func TestEnvironmentProblems(t *testing.T) {
	for variable, want := range map[string]string{
		"XIAOZHI_SERVER__LISTN=:1":                  "XIAOZHI_SERVER__LISTN: unknown key server.listn (did you mean server.listen?)",
		"XIAOZHI_SEVER__LISTEN=:1":                  "unknown key sever (did you mean server?)",
		"XIAOZHI_SERVER__=x":                        "unknown key server.",
		"XIAOZHI_SERVER__LISTEN__FIRST=x":           "unknown key server.listen.first",
		"XIAOZHI_AGENT__MAX_STEPS=many":             "XIAOZHI_AGENT__MAX_STEPS: agent.max_steps must be a whole number, found text",
		"XIAOZHI_AUTH__ENABLED=on":                  "auth.enabled must be true or false",
		"XIAOZHI_VOICE__IDLE_CLOSE=90":              `voice.idle_close must be a time with its unit, such as 100s or 240ms, found "90"`,
		"XIAOZHI_VOICE__IDLE_CLOSE=200s":            "XIAOZHI_VOICE__IDLE_CLOSE: voice.idle_close: 3m20s is not within",
		"XIAOZHI_PROVIDERS__A__EXTRA={":             "XIAOZHI_PROVIDERS__A__EXTRA: not valid YAML",
		"XIAOZHI_PROVIDERS__A__EXTRA=text":          "providers.a.extra must be a section of keys, found text",
		"XIAOZHI_SERVER__LISTEN=":                   "XIAOZHI_SERVER__LISTEN: server.listen: at least one address is needed",
		"XIAOZHI_TOOLS__KINDS={self.lamp.*: maybe}": `tools.kinds.self.lamp.*: "maybe" is none of`,
	} {
		if _, err := loadText(t, "", variable); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", variable, err, want)
		}
	}
}

func TestForeignVariables(t *testing.T) {
	_, warnings, err := Load(Options{
		File: writeFile(t, "c.yaml", ""), Env: []string{"XIAOZHI_PORT=tcp://10.0.0.1:8000", "XIAOZHI_SERVICE_HOST=10.0.0.1", "OTHER=1"},
	})
	if err != nil || len(warnings) != 2 || !strings.Contains(string(warnings[0]), "XIAOZHI_PORT") {
		t.Errorf("warnings %q, error %v", warnings, err)
	}
}

func TestListenFlagInErrors(t *testing.T) {
	_, _, err := Load(Options{File: writeFile(t, "c.yaml", ""), Listen: []string{"8000"}})
	if err == nil || !strings.Contains(err.Error(), `--listen: server.listen: "8000" is no address`) {
		t.Errorf("got %v", err)
	}
}

func TestExpand(t *testing.T) {
	environ := []string{"HOST=a.example.org", "EMPTY=", "KEY=k"}
	c := mustLoadText(t, `
server: {public_url: "https://${HOST}:${PORT:-443}"}
mcp: {enabled: false}
agent: {name: "a$b ${} ${1} $HOST ${EMPTY}", wake_words: ["${HOST}"]}
providers:
  has: {type: openai, api_key: "${KEY}"}
  lacks: {type: openai, api_key: "${NOT_SET}", headers: {A: "Bearer ${NOR_THIS}"}}
  empty: {type: openai, api_key: "${EMPTY}"}
  instead: {type: openai, api_key: "${EMPTY:-dummy}"}
  literal: {type: openai, api_key: "${KEY"}
`, environ...)
	if c.Server.PublicURL != "https://a.example.org:443" || c.Agent.Name != "a$b ${} ${1} $HOST " || c.Agent.WakeWords[0] != "a.example.org" {
		t.Errorf("%q, %q, %q", c.Server.PublicURL, c.Agent.Name, c.Agent.WakeWords)
	}
	for name, want := range map[string]struct {
		key     string
		missing int
	}{"has": {"k", 0}, "lacks": {"", 2}, "empty": {"", 1}, "instead": {"dummy", 0}, "literal": {"${KEY", 0}} {
		p := c.Providers[name]
		if p.APIKey.Reveal() != want.key || len(p.MissingEnv) != want.missing {
			t.Errorf("%s: key %q, missing %v", name, p.APIKey.Reveal(), p.MissingEnv)
		}
	}
	if got := c.Providers["lacks"].Headers["A"].Reveal(); got != "" {
		t.Errorf("half a header is left: %q", got)
	}
}

func TestSecretFiles(t *testing.T) {
	token, key, blank := writeFile(t, "token", " t0ken-of-all-devices\n"), writeFile(t, "key", "k3y"), writeFile(t, "blank", "\n")
	c := mustLoadText(t, "auth: {enabled: true, token: other, token_file: "+token+"}\nproviders: {a: {type: openai, api_key: '${NOT_SET}', api_key_file: "+key+"}}")
	if p := c.Providers["a"]; c.Auth.Token != "t0ken-of-all-devices" || p.APIKey != "k3y" || len(p.MissingEnv) > 0 {
		t.Errorf("token %q, key %q, missing %v", c.Auth.Token.Reveal(), p.APIKey.Reveal(), p.MissingEnv)
	}
	_, err := loadText(t, "auth: {token_file: "+blank+"}")
	if err == nil || !strings.Contains(err.Error(), "c") || !strings.Contains(err.Error(), "auth.token_file: "+blank+" is empty") {
		t.Errorf("an empty file: %v", err)
	}
}

func TestChainMembers(t *testing.T) {
	c := mustLoadText(t, `
asr: [mine, openai, pocketsphinx]
llm: [auto, mine, deepseek, dashscope, ollama, openai, rules]
tts: [mine, local]
vision: [mine]
providers: {mine: {type: openai}, local: {type: local, voice: {zh: cmn-latn-pinyin}}}
`)
	if len(c.LLM) != 7 || len(c.Vision) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestNearestName(t *testing.T) {
	for name, want := range map[string]string{"listn": "listen", "": "log", "LLM": "llm", "timezon": "timezone"} {
		if got := prompts.Nearest(name, []string{"listen", "log", "llm", "timezone"}); want != got && name != "LLM" {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
