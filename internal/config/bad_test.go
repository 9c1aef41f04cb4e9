package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBadFiles loads every file of testdata, whose names say what is
// wrong with them.
func TestBadFiles(t *testing.T) {
	want := map[string]string{
		"agents_no_agent":               "agents_no_agent.yaml:2: devices.24:6f:28:aa:10:02.agent: there is no agent teecher (did you mean teacher?) / 没有 teecher 这个智能体（是 teacher 吗？）",
		"agents_unknown_chain_member":   "agents_unknown_chain_member.yaml:4: agents.anna.llm: there is no providers.ruls (did you mean rules?)",
		"agents_wrong_role":             ":3: agents.anna.tts: pocketsphinx cannot do tts, only asr",
		"agents_realtime":               ":2: agents.anna.realtime: there is no providers.gemini-lve (did you mean gemini-live?) / ",
		"realtime_wrong_role":           ":1: realtime: pocketsphinx cannot do realtime, only asr / ",
		"agents_no_prompt":              ":2: agents.anna.prompt: there is no prompt storytelle (did you mean storyteller?)",
		"agents_unknown_key":            ":3: unknown key agents.anna.langauge (did you mean agents.anna.language?)",
		"agents_memory":                 `:2: agents.anna.memory: "always" is none of: keep, summary, talk, forget`,
		"agents_knowledge":              ":2: agents.anna.knowledge: the folder ./papers stands there twice / 文件夹 ./papers 写了两次",
		"memory_engine":                 `:2: memory.engine: "mem1" is none of: own, mem0, memobase`,
		"memory_no_key":                 ":1: memory.api_key: mem0 in the cloud needs a key; for a server of your own set memory.base_url / ",
		"memory_unknown_key":            ":3: unknown key memory.base_ur (did you mean memory.base_url?)",
		"memory_no_address":             `memory.base_url: "localhost:8888"`,
		"agents_no_tool":                ":2: agents.anna.tools.deny: there is no tool play_musik (did you mean play_music?) / 没有 play_musik 这个工具（是 play_music 吗？）",
		"agents_no_voice":               ":2: agents.anna.voice: there is no voice sltt in the chain local (did you mean slt?)",
		"agents_reserved":               `:2: agents.original: "original" cannot be the name of an agent`,
		"tls_half":                      ":2: server.tls: cert and key are given together, or neither",
		"tls_unheard":                   `:2: server.tls.listen: a certificate is given, and no address to use it at: server.tls.listen, such as ":8443"`,
		"tls_twice":                     ":2: server.tls.listen: :8000 is in server.listen too: one port is of http or of https",
		"unknown_key":                   "unknown_key.yaml:3: unknown key server.publc_url (did you mean server.public_url?) / 未知的键 server.publc_url（是 server.public_url 吗？）",
		"unknown_section":               "unknown_section.yaml:2: unknown key sever (did you mean server?)",
		"unknown_nested_key":            ":3: unknown key voice.endpointing.comit (did you mean voice.endpointing.commit?)",
		"unknown_provider_key":          ":4: unknown key providers.mine.apikey (did you mean providers.mine.api_key?)",
		"unknown_voice_language":        `:2: providers.mine.voice.jp: "jp" is no language tag (did you mean ja?)`,
		"agents_language":               `:2: agents.anna.language: "german" is no language tag (did you mean de?); write a tag such as zh, en, ja or pt-BR / 没有 "german" 这个语言代码（是 de 吗？）`,
		"unknown_type":                  `:3: providers.mine.type: unknown type "opnai" (did you mean openai?)`,
		"missing_type":                  ":2: providers.mine.type: a type is needed, one of: aliyun, ",
		"missing_type_empty_section":    ":2: providers.mine.type: a type is needed",
		"chain_without_section":         ":1: llm: there is no providers.ruls (did you mean rules?)",
		"chain_wrong_role":              ":1: tts: pocketsphinx cannot do tts, only asr",
		"chain_nearest_of_another_role": ":1: llm: there is no providers.locale (did you mean lacale?)",
		"chain_blind":                   ":1: vision: rules cannot do vision, only llm",
		"chain_empty":                   ":1: asr: at least one member is needed",
		"chain_twice":                   ":1: llm: rules is there twice",
		"chain_not_a_list":              ":1: llm must be a list such as [a, b], found text",
		"tab_indent":                    "tab_indent.yaml:2: a tab is used to indent; use spaces / 缩进用了制表符",
		"broken_quote":                  "broken_quote.yaml:2: not valid YAML: found",
		"broken_brackets":               "broken_brackets.yaml:2: not valid YAML: did not find expected",
		"two_documents":                 "more than one document",
		"duplicate_key":                 ":3: log.level is set twice (first in line 2)",
		"duplicate_device":              ":3: devices.aa:bb:cc:00:11:22 is set twice (first in line 2)",
		"list_at_top":                   "list_at_top.yaml:1: the file must be a section of keys, found a list",
		"text_at_top":                   "text_at_top.yaml:1: the file must be a section of keys, found text",
		"anchor":                        ":1: log: anchors and aliases are not supported",
		"number_for_section":            ":1: server must be a section of keys, found a number",
		"number_for_duration":           `:2: voice.idle_close must be a time with its unit, such as 100s or 240ms, found "100"`,
		"text_for_duration":             `:2: voice.idle_close must be a time with its unit, such as 100s or 240ms, found "soon"`,
		"list_for_duration":             ":2: voice.idle_close must be a time such as 100s, found a list",
		"text_for_number":               ":2: agent.max_steps must be a whole number, found text / agent.max_steps 应为整数",
		"fraction_for_whole_number":     ":2: agent.max_steps must be a whole number, found a number",
		"huge_number":                   ":2: agent.max_steps must be a whole number",
		"text_for_fraction":             ":2: voice.vad.start must be a number, found text / voice.vad.start 应为数字，现在是文字",
		"nan_for_fraction":              ":2: voice.vad.start must be a number, found .nan",
		"text_for_switch":               ":2: auth.enabled must be true or false, found text",
		"switch_for_text":               ":2: agent.name must be text, found true/false",
		"list_for_text":                 ":2: agent.name must be text, found a list",
		"idle_close_too_long":           ":2: voice.idle_close: 1m50s is not within 5s and 1m49.999s",
		"vad_end_above_start":           ":2: voice.vad.end: 0.6 must not be above voice.vad.start (0.3)",
		"trigger_above_commit":          ":3: voice.endpointing.trigger: 800ms must not be above voice.endpointing.commit (700ms)",
		"tool_timeout_long":             ":2: tools.timeouts.slow: 2h0m0s is not within 1s and 1h0m0s",
		"tool_timeout_pattern":          `:2: tools.timeouts.[: "[" is no pattern`,
		"tool_timeout_text":             `:3: tools.timeouts.slow must be a time with its unit, such as 100s or 240ms, found "soon"`,
		"opus_bitrate":                  ":2: voice.opus.bitrate: 24 is not within 8000 and 64000",
		"opus_complexity":               ":2: voice.opus.complexity: 11 is not within 0 and 10",
		"lead_too_long":                 ":2: voice.pacing.lead: 1s is not within 180ms and 360ms",
		"port_too_high":                 `:1: server.listen: ":70000" is no address`,
		"address_without_port":          `:1: server.listen: "localhost" is no address`,
		"no_address":                    ":1: server.listen: at least one address is needed",
		"public_url_without_host":       `:1: server.public_url: "speaker.local" is no full address`,
		"unknown_timezone":              `:1: server.timezone: "Asia/Shangai" is no known time zone; did you mean Asia/Shanghai?`,
		"wildcard_origin":               `:1: server.origins: "*" is no origin such as https://console.example.org`,
		"origin_with_path":              `:1: server.origins: "https://a.example/page" is no origin`,
		"quiet_hours":                   `:1: quiet.hours: "22-7" are no quiet hours; write 22:00-07:00`,
		"device_quiet":                  `:2: devices.aa:bb:cc:00:11:22.quiet.hours: "22:00-25:00" are no quiet hours`,
		"device_group":                  `:2: devices.aa:bb:cc:00:11:22.groups: "up:stairs" cannot be the name of a group`,
		"unknown_pairing":               `:1: auth.pairing: "asked" is none of: auto, open, ask, closed`,
		"unknown_strangers":             `:1: devices.unknown: "none" is none of: local_only, refuse, all`,
		"device_in_two_spellings":       ":3: devices.AABBCC001122 is set twice (first in line 2)",
		"unknown_language":              `:1: server.language: "jp" is no language tag (did you mean ja?); write a tag such as zh, en, ja or pt-BR`,
		"no_devices_allowed":            ":1: server.max_devices: 0 is not within 1 and 100000",
		"lateness_below_zero":           ":1: server.max_lateness: -1s is not within 0s and 10s",
		"auth_without_token":            ":2: auth.enabled: auth is on, but there is no token",
		"auth_token_short":              ":1: auth.token: the token is too short: at least 16 characters are needed",
		"auth_token_variable_not_set":   ":1: auth.token: auth is on, but there is no token: the environment variable NOT_SET is not set / 已开启认证",
		"token_file_missing":            ":2: auth.token_file: ",
		"api_key_file_missing":          ":2: providers.mine.api_key_file: ",
		"variable_not_set":              ":2: server.public_url: the environment variable NOT_SET is not set",
		"unknown_kind":                  `:2: tools.kinds.self.lamp.*: "often" is none of: control, query`,
		"broken_pattern":                `:2: tools.deny: "self.[lamp" is no pattern`,
		"device_zone":                   `:2: devices.aa:bb:cc:00:11:22.zone: "Europe/Berlim" is no known time zone`,
		"device_language":               `:2: devices.aa:bb:cc:00:11:22.language: "auto" is no language tag (did you mean`,
		"prompt_is_a_path":              `:1: agent.prompt: "../prompts/pirate.md" is no name of a prompt`,
		"no_name":                       ":1: agent.name: a name is needed",
		"record_unknown":                `:2: recording.sound: "always" is none of: off, user, both`,
		"record_agent":                  `:2: agents.anna.record: "yes" is none of: off, user, both`,
		"record_device":                 `:2: devices.aa:bb:cc:00:11:22.record: "mine" is none of: off, user, both`,
		"record_quota":                  ":1: recording.quota must be a size such as 2GiB or 500MiB, found text",
		"record_quota_small":            ":1: recording.quota: it must be 1MiB or more; to record nothing, set recording.sound: off",
		"record_days":                   ":1: recording.days: 0 is not within 1 and 3650",
		"record_no_store":               ":3: devices.aa:bb:cc:00:11:22.record: sound is kept next to its turn, and store.driver: none keeps no turns",
		"unknown_log_level":             `:1: log.level: "loud" is none of`,
		"unknown_log_format":            `:1: log.format: "xml" is none of: text, json`,
		"base_url_without_scheme":       `:1: providers.mine.base_url: "127.0.0.1:11434/v1" is no address`,
		"temperature_too_high":          ":1: providers.mine.temperature: 3 is not within 0 and 2",
		"unknown_sound_format":          `:1: providers.mine.format: "flac" is none of`,
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		c, _, err := Load(Options{File: filepath.Join("testdata", e.Name())})
		switch {
		case want[name] == "":
			t.Errorf("%s: this test does not know what is wrong with it", name)
		case c != nil || err == nil || !strings.Contains(err.Error(), want[name]):
			t.Errorf("%s: got %v\nwant %s", name, err, want[name])
		case !strings.Contains(err.Error(), " / "):
			t.Errorf("%s: only one language: %v", name, err)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("no file %s.yaml", name)
	}
}

// TestAllMistakesReported holds keys, kinds and values wrong in one file
// against the report, and against complaints that would only follow from them.
func TestAllMistakesReported(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"a key, a kind, two values", `
server: {publc_url: "http://a", listen: ["localhost"]}
voice: {idle_close: soon}
agent: {max_steps: 99}
`, []string{":2: unknown key server.publc_url", ":2: server.listen: \"localhost\" is no address", ":3: voice.idle_close must be a time", ":4: agent.max_steps: 99 is not within"}},
		{"the token's key", "auth: {enabled: true, tokn: x}\nlog: {level: loud}\n", []string{":1: unknown key auth.tokn", ":2: log.level"}},
		{"the token's file", "auth: {enabled: true, token_file: /nowhere}\n", []string{":1: auth.token_file"}},
		{"the sections' key", "provders: {mine: {type: openai}}\nllm: [mine]\nagent: {name: \"\"}\n", []string{":1: unknown key provders", ":3: agent.name: a name is needed"}},
		{"a section's type", "providers: {mine: {typ: openai, temperature: 7}}\nllm: [mine]\n", []string{":1: unknown key providers.mine.typ", ":1: providers.mine.temperature: 7 is not within"}},
		{"one of two bounds", "voice: {endpointing: {trigger: 900ms, commit: 2}}\n", []string{":1: voice.endpointing.commit must be a time"}},
	}
	for _, tt := range tests {
		_, err := loadText(t, tt.text)
		if err == nil {
			t.Errorf("%s: no error", tt.name)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		for _, want := range tt.want {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
				t.Errorf("%s: not told: %s\ngot %v", tt.name, want, err)
			}
		}
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %d complaints, want %d: %v", tt.name, len(lines), len(tt.want), err)
		}
	}
}

func TestUnreadableFiles(t *testing.T) {
	_, _, err := Load(Options{File: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a folder: %v", err)
	}
	big := writeFile(t, "big.yaml", strings.Repeat("# x\n", maxFile/4+1))
	if _, _, err := Load(Options{File: big}); err == nil || !strings.Contains(err.Error(), "are too many") {
		t.Errorf("a huge file: %v", err)
	}
	for name, text := range map[string]string{"binary": "\x00\x01\x02", "latin-1": "agent: {name: \xe9}", "deep": strings.Repeat("[", 20000)} {
		if _, err := loadText(t, text); err == nil || !strings.Contains(err.Error(), "not valid YAML") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReservedNames: what would be ignored in silence is an error.
func TestReservedNames(t *testing.T) {
	for config, want := range map[string]string{
		"providers:\n  auto: {type: openai}":                     ":2: providers.auto: this name stands for what the environment offers",
		"llm: [rules]\nproviders: {rules: {type: local}}":        "llm: rules cannot do llm, only tts",
		"llm: [rules]\nproviders: {rules: {type: pocketsphinx}}": "llm: rules cannot do llm, only asr",
		"vision: [local]": "vision: local cannot do vision, only tts",
		"vision: [x]":     "vision: there is no providers.x",
		"asr: [deepseek]": "asr: deepseek cannot do asr, only llm",
		"tts: [rules]":    "tts: rules cannot do tts, only llm",
	} {
		if _, err := loadText(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", config, err, want)
		}
	}
}
