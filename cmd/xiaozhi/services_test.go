package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/openairealtime"
	"xiaozhi/internal/servicetest/openaispeech"
)

// TestServices tries a service from a file that is not in use, as its owner would.
func TestServices(t *testing.T) {
	fake := openaispeech.New(t)
	data := t.TempDir()
	conf := filepath.Join(t.TempDir(), "new.yaml")
	text := fmt.Sprintf(`
asr: [mine, lost]
realtime: [live, gemini-live]
tts: [mine]
llm: [rules]
providers:
  mine: {type: openai, base_url: "%s/v1", api_key: %s, price: {minute: 0.5, characters: 2}}
  wrong: {type: openai, base_url: "%s/v1", api_key: sk-wrong-key-000000}
  closed: {type: whisper-cpp, base_url: "http://127.0.0.1:1"}
  lost: {type: deepgram}
  live: {type: openai-realtime, base_url: "%s", api_key: %s, price: {minute: 0.5, input: 4}}
`, fake.URL(), servicetest.Key, fake.URL(), openairealtime.New(t).URL(), servicetest.Key)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEEPGRAM_API_KEY", "")
	t.Setenv("GEMINI_API_KEY", "")
	for _, tt := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"list"}, 0, []string{"asr", "mine", "ok", "lost", "providers.lost.api_key", "realtime", "live", "gemini-live  -", "$GEMINI_API_KEY"}},
		{[]string{"test", "mine", "--role", "tts", "--runs", "2", "--text", "ten signs!"}, 0, []string{"first sound after", "cost 0.020000", "medians of 2 of 2 tries", "2 次（共 2 次）的中位数"}},
		{[]string{"test", "mine", "--runs", "2", "--json", "--role", "tts"}, 0, []string{`"service": "mine"`, `"run": 2`, `"first_ms": `, `"medians": [`}},
		{[]string{"test", "wrong", "--role", "tts", "--json"}, 1, []string{`"error": "the key is wrong`}},
		{[]string{"test", "lost", "--json"}, 1, []string{`"error": "not usable`}},
		{[]string{"voices", "mine", "--json"}, 0, []string{`"name": "alloy"`}},
		{[]string{"test", "mine", "--role", "asr", "--text", servicetest.Words}, 0, []string{`"今天天气怎么样 and the lamp": first text`, "cost 0."}},
		{[]string{"test", "wrong", "--role", "tts"}, 1, []string{"the key is wrong"}},
		{[]string{"test", "live", "--runs", "1"}, 0, []string{"realtime  gpt-realtime at http", `"今天天气怎么样 and the lamp" → `, "first sound ", "the tool was NOT called", "cost 0."}},
		{[]string{"test", "live", "--role", "tts"}, 1, []string{"live cannot do tts, only realtime"}},
		{[]string{"test", "mine", "--role", "ears"}, 2, nil},
		{[]string{"test"}, 2, []string{"test needs the NAME of a service"}},
		{[]string{"try", "mine"}, 2, []string{"try is none of list, test and voices"}},
		{[]string{"test", "nobody-at-all"}, 1, []string{"there is no service nobody-at-all: give"}},
		{[]string{"test", "depgram"}, 1, []string{"there is no service depgram (did you mean deepgram?)"}},
		{[]string{"test", "auto"}, 1, []string{"auto is no service", "auto 不是一个服务"}},
		{[]string{"test", "rules"}, 0, []string{"llm  rules: time", `"What time is it?" → "It is `}},
		{[]string{"test", "local", "--text", "hi"}, 0, []string{"tts  ", "first sound after"}},
		{[]string{"test", "pocketsphinx", "--text", "hi"}, 0, []string{"asr  English, offline", "final text"}},
		{[]string{"test", "closed", "--role", "asr", "--text", "hi"}, 1, []string{"nothing listens at this address", "这个地址上没有程序在监听"}},
		{[]string{"test", "lost"}, 1, []string{"not usable", "no key"}},
		{[]string{"voices", "mine"}, 0, []string{"alloy", "gives no list of its voices"}},
		{[]string{"voices", "rules"}, 1, []string{"rules cannot do tts, only llm"}},
		{[]string{"voices", "tencent"}, 0, []string{"101001", "gives no list of its voices"}},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"services"}, tt.args...)
		code := run(t.Context(), append(args, "--config", conf, "--data", data, "--language", "en"), &out, &errs)
		shown := out.String() + errs.String()
		if code != tt.code {
			t.Errorf("%q: code %d, want %d:\n%s", tt.args, code, tt.code, shown)
		}
		for _, want := range tt.want {
			if !strings.Contains(shown, want) {
				t.Errorf("%q does not say %q:\n%s", tt.args, want, shown)
			}
		}
		if strings.Contains(shown, servicetest.Key) || strings.Contains(shown, "sk-wrong") {
			t.Errorf("%q shows a key:\n%s", tt.args, shown)
		}
	}
}
