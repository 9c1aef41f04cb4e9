package engines

import (
	"log/slog"
	"strings"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

// TestRealtimeServices: speech to speech is used only where it is written, and the start says what is.
func TestRealtimeServices(t *testing.T) {
	for _, c := range []struct {
		name, config string
		env          []string
		want         string
	}{
		{"a key alone is not enough", "", []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY"}, ""},
		{
			"auto", "realtime: [auto]", []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY"},
			"openai-realtime: gpt-realtime at api.openai.com\nqwen-omni: qwen3.5-omni-flash-realtime at dashscope.aliyuncs.com",
		},
		{"auto after a name", "realtime: [qwen-omni, auto]", []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY"}, "qwen-omni: qwen3.5-omni-flash-realtime at dashscope.aliyuncs.com\nopenai-realtime: gpt-realtime at api.openai.com"},
		{"the key of another address", "realtime: [auto]", []string{"OPENAI_API_KEY", "OPENAI_BASE_URL=http://127.0.0.1:9"}, "no service that hears and speaks by itself can be used (key: realtime); asr, llm and tts answer / 没有可用的端到端语音服务（配置项 realtime），由 asr、llm、tts 回答"},
		{"at an address of its own", "realtime: [auto]", []string{"OPENAI_API_KEY", "OPENAI_REALTIME_BASE_URL=ws://127.0.0.1:9"}, "openai-realtime: gpt-realtime at ws://127.0.0.1:9"},
		{"without its key", "realtime: [gemini-live, doubao-dialogue]", []string{"VOLCENGINE_API_KEY", "VOLCENGINE_APP_ID"}, "- gemini-live: left out / 未启用: no key / 没有密钥: $GEMINI_API_KEY\ndoubao-dialogue: 1.2.1.1 at openspeech.bytedance.com (without tools / 不能用工具)"},
		{"a section", "realtime: [mine]\nproviders: {mine: {type: openai-realtime, api_key: k, model: gpt-realtime-mini}}", nil, "mine: gpt-realtime-mini at api.openai.com"},
		{"a section that nobody takes", "providers: {mine: {type: gemini-live, api_key: k}}", nil, "not used: mine hears and speaks by itself, which is done where realtime names it / 没有使用：mine 是端到端语音服务，写进 realtime 才用"},
		{"none", "realtime: [none]\nproviders: {mine: {type: gemini-live, api_key: k}}\nagents: {a: {realtime: [auto]}}", nil, "mine: gemini-live-2.5-flash-native-audio at generativelanguage.googleapis.com"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bare(t)
			for _, name := range c.env {
				name, value, set := strings.Cut(name, "=")
				if !set {
					value = "sk-secret"
				}
				t.Setenv(name, value)
			}
			f := batchOf(mustLoadText(t, c.config), slog.New(slog.DiscardHandler))
			_, err := f.duplexes(t.Context(), f.cfg.Realtime)
			if err == nil {
				_, err = f.agents(t.Context())
			}
			f.tellIdle()
			if got := strings.TrimSpace(strings.ReplaceAll(strings.Join(f.report.lines, "\n"), "  S2S  ", "")); err != nil || got != c.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

// TestRealtimeOfAgents: an agent has a chain of its own, that of all, or none, also when it is made while devices talk.
func TestRealtimeOfAgents(t *testing.T) {
	bare(t)
	f := batchOf(mustLoadText(t, `
realtime: [a]
providers:
  a: {type: openai-realtime, api_key: k}
  b: {type: qwen-omni, api_key: k}
  keyless: {type: gemini-live, api_key: '${NOT_SET}'}
agents:
  own: {realtime: [b]}
  none: {realtime: [none]}
  lame: {realtime: [keyless]}
  plain: {language: zh}
`), slog.New(slog.DiscardHandler))
	all, err := f.duplexes(t.Context(), f.cfg.Realtime)
	if err != nil || all == nil || all.Name() != "a" {
		t.Fatalf("%v %v", all, err)
	}
	made, err := f.agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		duplex  string
		cascade bool
	}{"own": {"b", false}, "none": {"", true}, "lame": {"", true}, "plain": {"", false}} {
		got, is := made[name], ""
		if got.Duplex != nil {
			is = got.Duplex.Name()
		}
		if is != want.duplex || got.Cascade != want.cascade {
			t.Errorf("%s: %q, cascade %v", name, is, got.Cascade)
		}
	}
}

// TestVoiceOfAnotherService: a voice that is meant for the chain of voices is not asked of a service that does not have it.
func TestVoiceOfAnotherService(t *testing.T) {
	for asked, want := range map[string]string{"marin": "marin", "longxiaochun": "", "": ""} {
		d := &providertest.Duplex{}
		if _, err := (ownVoices{d, []service.Voice{{Name: "marin"}}}).Open(t.Context(), providers.DuplexRequest{Voice: asked}); err != nil || d.Requests()[0].Voice != want {
			t.Errorf("%q: asked for %q, %v", asked, d.Requests()[0].Voice, err)
		}
	}
}
