package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSectionsOfServices: what is wrong with a section is told with its place and what was
// probably meant.
func TestSectionsOfServices(t *testing.T) {
	tests := map[string]struct{ text, want, warned string }{
		"a key is enough":      {"providers:\n  dashscope: {api_key: k}\nasr: [dashscope]\nllm: [dashscope]", "", ""},
		"unknown region":       {"providers:\n  dashscope: {api_key: k, region: intll}", ":2: providers.dashscope.region: there is no region intll (did you mean intl?)", ""},
		"no regions":           {"providers:\n  deepgram: {api_key: k, region: eu}", ":2: providers.deepgram.region: deepgram has no regions", ""},
		"misspelt setting":     {"providers:\n  tencent:\n    hotword: 7", ":3: unknown key providers.tencent.hotword (did you mean providers.tencent.hotwords?)", ""},
		"setting of a kind":    {"providers:\n  volcengine: {api_key: k, mode: bigmodell}", `:2: providers.volcengine.mode: "bigmodell" is none of: bigmodel_async`, ""},
		"setting's type":       {"providers:\n  tencent: {volume: loud}", ":2: providers.tencent.volume must be a number, found text", ""},
		"format of a kind":     {"providers:\n  elevenlabs: {api_key: k, format: flac}", `:2: providers.elevenlabs.format: "flac" is none of: pcm, mp3, opus`, ""},
		"wrong role":           {"providers:\n  baidu: {api_key: k, api_secret: s}\ntts: [baidu]", ":3: tts: baidu cannot do tts, only asr", ""},
		"another does it":      {"llm: [dashscope, rules]\nrealtime: [openai]", ":2: realtime: openai cannot do realtime, only asr, llm, vision, tts; with the same key: openai-realtime", ""},
		"speech to speech":     {"providers:\n  omni: {type: qwen-omni, api_key: k, voice: Cherry, region: intl}\nrealtime: [omni, auto]", "", ""},
		"realtime's region":    {"providers:\n  qwen-omni: {api_key: k, region: us}\nrealtime: [qwen-omni]", ":2: providers.qwen-omni.region: there is no region us (did you mean cn?); there are: cn, intl", ""},
		"realtime's voice":     {"providers:\n  openai-realtime: {api_key: k, voice: marinn}\nrealtime: [openai-realtime]", "", ":2: providers.openai-realtime.voice: voice marinn is none that is known here (did you mean marin?)"},
		"realtime's key":       {"providers:\n  gemini-live: {}\nrealtime: [gemini-live]", "", ":2: providers.gemini-live.api_key: it is not set, and neither is $GEMINI_API_KEY"},
		"nobody's name":        {"realtime: [openai-realtim]", ":1: realtime: there is no providers.openai-realtim (did you mean openai-realtime?)", ""},
		"none with others":     {"agents:\n  anna: {realtime: [none, auto]}", ":2: agents.anna.realtime: none stands for no member: it must be the only one", ""},
		"none is no ears":      {"asr: [none]", ":1: asr: none cannot do asr, only realtime", ""},
		"a section of none":    {"providers:\n  none: {type: openai, api_key: k}", ":2: providers.none: the name none stands for no member", ""},
		"agent's voice":        {"realtime: [openai-realtime]\nagents:\n  anna: {voice: marine, tts: [openai]}\n  bob: {voice: marin}\n  eve: {voice: x, realtime: [none], tts: [openai]}", "", ":3: agents.anna.voice: openai-realtime has no voice marine that is known here, and speaks with that of its section (did you mean marin?)"},
		"device's voice":       {"realtime: [openai-realtime]\ndevices:\n  'aa:bb:cc:00:11:22': {voice: echoo}", "", ":3: devices.aa:bb:cc:00:11:22.voice: openai-realtime has no voice echoo"},
		"wrong proxy":          {"providers:\n  openai: {api_key: k, proxy: 'me:secret@10.0.0.1'}", `providers.openai.proxy: "…@10.0.0.1" is no address`, ""},
		"speed":                {"providers:\n  openai: {api_key: k, speed: 9}", "providers.openai.speed: 9 is not within", ""},
		"near voice":           {"providers:\n  iflytek: {app_id: a, api_key: k, api_secret: s, voice: xiaoyam}", "", ":2: providers.iflytek.voice: voice xiaoyam is none that is known here (did you mean xiaoyan?)"},
		"near model":           {"providers:\n  deepgram: {api_key: k, asr_model: flux-general-e}", "", ":2: providers.deepgram.asr_model: model flux-general-e is none that is known here (did you mean flux-general-en?)"},
		"missing key":          {"providers:\n  iflytek: {app_id: a, api_key: k}", "", ":2: providers.iflytek.api_secret: it is not set, and neither is $IFLYTEK_API_SECRET"},
		"an address by socket": {"providers:\n  funasr: {base_url: 'ws://127.0.0.1:10095'}\nasr: [funasr]", "", ""},
		"nowhere":              {"providers:\n  wyoming: {speed: 1.5}\ntts: [wyoming]", "", ":2: providers.wyoming.base_url: it is not set, and this service is nowhere without it"},
		"at home as usual":     {"providers:\n  vosk: {}\nasr: [vosk]", "", ""},
		"another's scheme":     {"providers:\n  wyoming: {base_url: 'http://127.0.0.1:10300'}", `:2: providers.wyoming.base_url: "http://127.0.0.1:10300" is no address; it begins with tcp://`, ""},
		"a bare connection":    {"providers:\n  vosk: {base_url: 'tcp://127.0.0.1:2700'}", `:2: providers.vosk.base_url: "tcp://127.0.0.1:2700" is no address; it begins with http://`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, warnings, err := Load(Options{File: file})
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case err != nil && strings.Contains(err.Error(), "secret@"):
				t.Errorf("the password is shown: %v", err)
			}
			told := ""
			for _, w := range warnings {
				told += string(w) + "\n"
			}
			if !strings.Contains(told, tt.warned) || tt.warned == "" && told != "" && tt.want == "" {
				t.Errorf("warned %q, want %q", told, tt.warned)
			}
		})
	}
}
