package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/openaispeech"
)

// TestServicesOfRunningServer: the list tells how the services of the server are that runs on the data folder, and shows
// no key.
func TestServicesOfRunningServer(t *testing.T) {
	fake := openaispeech.New(t)
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	t.Setenv("DEEPGRAM_API_KEY", "")
	base, end := serving(t, fmt.Sprintf(`
asr: [pocketsphinx, deepgram]
tts: [mine, local]
realtime: [live]
llm: [rules]
vision: []
agents: {story: {tts: [local]}}
providers:
  live: {type: openai-realtime, api_key: k}
  mine: {type: openai, base_url: "%s/v1", api_key: sk-wrong-key-000000}
`, fake.URL()))
	list := func(args ...string) (code int, shown string) {
		var out, errs bytes.Buffer
		code = run(t.Context(), append([]string{"services", "list", "--config", "config.yaml"}, args...), &out, &errs)
		return code, out.String() + errs.String()
	}
	shown, failed := "", "last failure at"
	for until := time.Now().Add(20 * time.Second); !strings.Contains(shown, failed) && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if code, now := list("--server", base); code != 0 {
			t.Fatalf("code %d: %s", code, now)
		} else {
			shown = now
		}
	}
	for _, want := range []string{
		"the server at " + base + " runs", "asr  pocketsphinx  in use", "deepgram", "left out", "$DEEPGRAM_API_KEY",
		"mine", "/v1", failed, "the key is wrong", "rules", "of the agents story", "realtime live in use / 在用 - gpt-realtime at api.openai.com",
	} {
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("it does not say %q:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "sk-wrong") {
		t.Errorf("a key is shown:\n%s", shown)
	}
	var states engines.States
	if code, out := list("--server", base, "--json"); code != 0 || json.Unmarshal([]byte(out), &states) != nil || len(states.Chains) < 4 {
		t.Errorf("--json: %d\n%s", code, out)
	}
	asksDoctor(t, base)
	t.Setenv("XIAOZHI_MCP_TOKEN", "0123456789abcdef-wrong")
	if code, out := list("--server", base); code != 1 || !strings.Contains(out, "401") {
		t.Errorf("with a wrong token: %d\n%s", code, out)
	}
	if resp, err := http.Get(base + engines.StatesPath); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	end()
	if code, out := list("--server", base); code != 1 || !strings.Contains(out, "does the server run?") {
		t.Errorf("when it has ended: %d\n%s", code, out)
	}
	if code, out := list(); code != 0 || !strings.Contains(out, "this is what the settings say") {
		t.Errorf("no server: %d\n%s", code, out)
	}
	asksNoDoctor(t)
	if code, out := list("--data", t.TempDir()); code != 0 || !strings.Contains(out, "this is what the settings say") || strings.Contains(out, "admin-token") {
		t.Errorf("before the first start: %d\n%s", code, out)
	}
	if strings.Contains(shown, servicetest.Key) {
		t.Error("a key is shown")
	}
}

func TestServerOfSettings(t *testing.T) {
	for listen, want := range map[string]string{
		":8000": "http://127.0.0.1:8000", "0.0.0.0:9": "http://127.0.0.1:9", "[::]:9": "http://127.0.0.1:9", "192.168.1.2:80": "http://192.168.1.2:80", "[::1]:7": "http://[::1]:7", "127.0.0.1:0": "http://127.0.0.1:8000",
	} {
		if got := serverOf(&config.Config{Server: config.Server{Listen: []string{listen}}}); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
