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
		"other program's key":  {"providers:\n  mine:\n    type: openai\n    endpoint: http://x", ":4: unknown key providers.mine.endpoint (did you mean providers.mine.base_url?)", ""},
		"other word":           {"providers:\n  edge:\n    rate: 1.2", ":3: unknown key providers.edge.rate (did you mean providers.edge.speed?)", ""},
		"region in capitals":   {"providers:\n  dashscope:\n    region: US", ":3: providers.dashscope.region: there is no region US (did you mean us?)", ""},
		"proxy off":            {"providers:\n  edge:\n    proxy: \"off\"", "(did you mean none?)", ""},
		"language by name":     {"providers:\n  deepgram:\n    language: chinese", ":3: providers.deepgram.language: \"chinese\" is no language tag (did you mean zh?)", ""},
		"language of others":   {"providers:\n  iflytek: {app_id: a, api_key: k, api_secret: s, language: zh_cn}", "", ""},
		"voice by its person":  {"providers:\n  edge:\n    voice: xiaoxiao", "", "voice xiaoxiao is none that is known here (did you mean zh-CN-XiaoxiaoNeural?)"},
		"misspelt setting":     {"providers:\n  tencent:\n    hotword: 7", ":3: unknown key providers.tencent.hotword (did you mean providers.tencent.hotwords?)", ""},
		"setting of a kind":    {"providers:\n  volcengine: {api_key: k, mode: bigmodell}", `:2: providers.volcengine.mode: "bigmodell" is none of: bigmodel_async`, ""},
		"setting's type":       {"providers:\n  tencent: {volume: loud}", ":2: providers.tencent.volume must be a number, found text", ""},
		"format of a kind":     {"providers:\n  elevenlabs: {api_key: k, format: flac}", `:2: providers.elevenlabs.format: "flac" is none of: pcm, mp3, opus`, ""},
		"wrong role":           {"providers:\n  baidu: {api_key: k, api_secret: s}\ntts: [baidu]", ":3: tts: baidu cannot do tts, only asr", ""},
		"another does it":      {"llm: [dashscope, rules]\nrealtime: [openai]", ":2: realtime: openai cannot do realtime, only asr, llm, vision, tts, embed; with the same key: openai-realtime", ""},
		"speech to speech":     {"providers:\n  omni: {type: qwen-omni, api_key: k, voice: Cherry, region: intl}\nrealtime: [omni, auto]", "", ""},
		"realtime's region":    {"providers:\n  qwen-omni: {api_key: k, region: us}\nrealtime: [qwen-omni]", ":2: providers.qwen-omni.region: there is no region us (did you mean cn?); there are: cn, intl", ""},
		"realtime's voice":     {"providers:\n  openai-realtime: {api_key: k, voice: marinn}\nrealtime: [openai-realtime]", "", ":2: providers.openai-realtime.voice: voice marinn is none that is known here (did you mean marin?)"},
		"realtime's key":       {"providers:\n  gemini-live: {}\nrealtime: [gemini-live]", "", ":2: providers.gemini-live.api_key: it is not set, and neither is $GEMINI_API_KEY"},
		"nobody's name":        {"realtime: [openai-realtim]", ":1: realtime: there is no providers.openai-realtim (did you mean openai-realtime?)", ""},
		"none with others":     {"agents:\n  anna: {realtime: [none, auto]}", ":2: agents.anna.realtime: none stands for no member: it must be the only one", ""},
		"none is no ears":      {"asr: [none]", ":1: asr: none cannot do asr, only realtime", ""},
		"a section of none":    {"providers:\n  none: {type: openai, api_key: k}", ":2: providers.none: the name none stands for no member", ""},
		"agent's voice":        {"realtime: [openai-realtime]\nagents:\n  anna: {voice: marine, tts: [openai]}\n  bob: {voice: marin}\n  eve: {voice: x, realtime: [none], tts: [openai]}", "", ":3: agents.anna.voice: openai-realtime has no voice marine that is known here, and speaks with that of its section (did you mean marin?)"},
		"voice of nobody":      {"tts: [local]\nagents:\n  eve: {voice: Puk, realtime: [gemini-live]}", ":3: agents.eve.voice: there is no voice Puk in the chain local (did you mean Puck?)", ""},
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
		"another's region":     {"providers:\n  dashscope: {api_key: k, region: eastasia}", ":2: providers.dashscope.region: there is no region eastasia (did you mean intl?); there are: cn, intl, us; eastasia is one of azure", ""},
		"no socket":            {"providers:\n  piper: {base_url: 'ws://10.0.0.2:5000'}", `it begins with http://, https:// (did you mean http://10.0.0.2:5000?)`, ""},
		"a model's socket":     {"providers:\n  a: {type: vllm, model: m, base_url: 'wss://10.0.0.2/v1'}", `it begins with http://, https:// (did you mean https://10.0.0.2/v1?)`, ""},
		"no scheme":            {"providers:\n  vosk: {base_url: '10.0.0.2:2700'}", `(did you mean http://10.0.0.2:2700?)`, ""},
		"space before":         {"providers:\n  vosk: {base_url: ' ws://10.0.0.2:2700'}", `(did you mean ws://10.0.0.2:2700?)`, ""},
		"a port":               {"providers:\n  vosk: {base_url: 'ws://10.0.0.2:99999'}", ":2: providers.vosk.base_url: there is no port 99999", ""},
		"a whole address":      {"providers:\n  deepseek: {api_key: k, base_url: 'https://a.example/v1/chat/completions'}", ":2: providers.deepseek.base_url: leave out /chat/completions, it is added by itself (did you mean https://a.example/v1?)", ""},
		"a webhook":            {"providers:\n  n8n: {base_url: 'http://10.0.0.2/webhook/responses'}", "", ""},
		"region and address":   {"providers:\n  dashscope: {api_key: k, region: intl, base_url: 'https://a.example'}", "", ":2: providers.dashscope.base_url: the region intl is not used"},
		"key's end of line":    {"providers:\n  deepseek: {api_key: \"sk-secret@\\n\"}", ":2: providers.deepseek.api_key: there is a space or an end of a line in it", ""},
		"key's space":          {"providers:\n  iflytek: {app_id: 'a b', api_key: k, api_secret: s}", ":2: providers.iflytek.app_id: there is a space", ""},
		"key's quotes":         {"providers:\n  deepseek: {api_key: \"'sk-secret@'\"}", ":2: providers.deepseek.api_key: the key stands in quotes", ""},
		"full-width key":       {"providers:\n  deepseek: {api_key: ｓｋ－secret@}", ":2: providers.deepseek.api_key: there are characters in it that no key has", ""},
		"key's word":           {"providers:\n  deepseek: {api_key: Bearer sk-secret@}", ":2: providers.deepseek.api_key: only the key itself belongs here", ""},
		"variable's name":      {"providers:\n  deepseek: {api_key: $DEEPSEEK_API_KEY}", ":2: providers.deepseek.api_key: it is the name of a variable, not a key: write ${NAME}", ""},
		"placeholder":          {"providers:\n  deepseek: {api_key: your-api-key}", ":2: providers.deepseek.api_key: this is a placeholder", ""},
		"name and password":    {"providers:\n  n8n: {base_url: 'http://10.0.0.2/webhook/a', app_id: 王 小明, api_secret: a b}", "", ""},
		"another's key":        {"providers:\n  baidu: {app_id: '1', api_key: k, api_secret: s}", "", ":2: providers.baidu.app_id: baidu takes no such key; "},
		"negative price":       {"providers:\n  deepseek: {api_key: k, price: {output: -1}}", ":2: providers.deepseek.price.output: -1: a price is from 0 to 1000000000", ""},
		"endless price":        {"providers:\n  deepseek: {api_key: k, price: {characters: 1e300}}", ":2: providers.deepseek.price.characters: 1e+300: a price is", ""},
		"negative retries":     {"providers:\n  deepseek: {api_key: k, retries: -1}", ":2: providers.deepseek.retries: -1 is not within 0 and 10", ""},
		"time without unit":    {"providers:\n  deepseek: {api_key: k, timeout: '5'}", ":2: providers.deepseek.timeout must be a time with its unit", ""},
		"another's voice":      {"providers:\n  edge: {voice: alloy}", "", ":2: providers.edge.voice: alloy is a voice of openai, openai-realtime; edge has others, such as zh-CN-XiaoxiaoNeural"},
		"another role's model": {"providers:\n  openai: {api_key: k, asr_model: tts-1}", "", ":2: providers.openai.asr_model: tts-1 is a model for tts; for asr there are: gpt-4o-mini-transcribe"},
		"voice for ears":       {"providers:\n  baidu: {api_key: k, api_secret: s, voice: alloy}", "", ":2: providers.baidu.voice: it does nothing here"},
		"no speed":             {"providers:\n  deepgram: {api_key: k, speed: 1.2}", "", ":2: providers.deepgram.speed: it does nothing here: deepgram cannot"},
		"no extra":             {"providers:\n  edge: {extra: {a: b}}", "", ":2: providers.edge.extra: it does nothing here"},
		"a vendor's name":      {"providers:\n  a: {type: 讯飞, api_key: k}", `:2: providers.a.type: unknown type "讯飞" (did you mean iflytek?)`, ""},
		"upper case":           {"providers:\n  a: {type: DashScope, api_key: k}", `(did you mean dashscope?)`, ""},
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

// TestVariablesOfServices: a key of the environment that can be none is told, and not shown.
func TestVariablesOfServices(t *testing.T) {
	_, warnings, err := Load(Options{Env: []string{`DEEPSEEK_API_KEY="sk-secret"`, "DASHSCOPE_API_KEY=sk-good", "OPENAI_API_KEY=sk-secret "}})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, w := range warnings {
		told += string(w) + "\n"
	}
	for _, want := range []string{"$DEEPSEEK_API_KEY: the key stands in quotes", "$OPENAI_API_KEY: there is a space"} {
		if strings.Count(told, want) != 1 {
			t.Errorf("%q is not told once: %s", want, told)
		}
	}
	if strings.Contains(told, "sk-") || strings.Contains(told, "DASHSCOPE") {
		t.Errorf("%s", told)
	}
}
