package engines

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/internal/openaitest"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// bare takes out of the environment what would be picked up.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "DEEPSEEK_MODEL",
		"DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL", "DASHSCOPE_MODEL",
		"GEMINI_API_KEY", "VOLCENGINE_API_KEY", "VOLCENGINE_APP_ID", "OPENAI_REALTIME_BASE_URL",
	} {
		t.Setenv(name, "")
	}
}

// mustLoadText loads settings from the text of one file, without a data folder.
// TestCarefulSections: what people have set in the console is connected to with care, what stands in a file is not.
func TestCarefulSections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("providers:\n  home: {type: openai, base_url: http://169.254.1.1/v1, model: m}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Read(config.Options{File: path, DataDir: t.TempDir()}).Load(config.Layer{
		Revision: 1, Doc: []byte(`{"providers":{"typed":{"type":"openai","base_url":"http://rebound.example/v1","model":"m"},"half":{"type":"ollama"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := OpenServices(cfg, slog.New(slog.DiscardHandler))
	defer s.Close()
	for name, want := range map[string]bool{"home": false, "typed": true, "half": true} {
		made, err := s.f.settings(name, cfg.Providers[name])
		if err != nil || made.Careful != want {
			t.Errorf("%s: careful %v, %v", name, made.Careful, err)
		}
	}
}

func mustLoadText(t *testing.T, text string, environ ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Options{File: path, Env: environ})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// batchOf makes engines of settings, and logs to log.
func batchOf(cfg *config.Config, log *slog.Logger) *batch { return New(log).batch(cfg, NewReport(log)) }

// textsOf are the texts of the program.
func textsOf(t *testing.T) *prompts.Set {
	t.Helper()
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestOneKeyAllRoles: with nothing but OPENAI_API_KEY, and openai named in
// the chains as the README says, each role asks for a model that can do it.
func TestOneKeyAllRoles(t *testing.T) {
	bare(t)
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	t.Setenv("OPENAI_API_KEY", "k")
	t.Setenv("OPENAI_BASE_URL", cloud.URL())
	t.Setenv("OPENAI_MODEL", "my-chat-model")
	f := batchOf(mustLoadText(t, "asr: [openai]\nllm: [auto]\ntts: [openai]"), slog.New(slog.DiscardHandler))
	asr, chinese, err := f.recognizers(t.Context(), f.cfg.ASR)
	if err != nil || !chinese {
		t.Fatalf("a recogniser in the cloud knows Chinese: %v, %v", chinese, err)
	}
	hear(t, asr)
	members, _, err := f.models(t.Context(), f.cfg.LLM)
	if err != nil || len(members) == 0 {
		t.Fatalf("%d models, %v", len(members), err)
	}
	think(t, members[0])
	tts, err := f.voices(t.Context(), f.cfg.TTS)
	if err != nil {
		t.Fatal(err)
	}
	synthesise(t, tts)
	for role, want := range map[openaitest.Role]string{openaitest.Transcribe: "gpt-4o-mini-transcribe", openaitest.Chat: "my-chat-model", openaitest.Speak: "gpt-4o-mini-tts"} {
		requests := cloud.Requests(role)
		if len(requests) == 0 {
			t.Errorf("%s: nothing was asked", role)
			continue
		}
		if got := model(requests[0]); got != want {
			t.Errorf("%s was asked of model %q, want %q", role, got, want)
		}
	}
}

func hear(t *testing.T, asr providers.ASR) {
	t.Helper()
	stream, err := asr.Open(t.Context(), providers.ASRRequest{Rate: 16000, Language: "zh"})
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Write(make([]int16, 16000)); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for _, err := range stream.Transcripts() {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// model is which model a request asks for, in a form or in JSON.
func model(r *openaitest.Request) any {
	if name, ok := r.Fields["model"]; ok {
		return name
	}
	return r.JSON()["model"]
}

func think(t *testing.T, llm providers.LLM) {
	t.Helper()
	for _, err := range llm.Generate(t.Context(), providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func synthesise(t *testing.T, tts providers.TTS) {
	t.Helper()
	for _, err := range tts.Synthesize(t.Context(), providers.TTSRequest{Text: "你好", Language: "zh"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryRoleDown: where no engine of a role could be made, the use of it is
// an error that names the role and what was asked for.
func TestEveryRoleDown(t *testing.T) {
	bare(t)
	f := batchOf(mustLoadText(t, "asr: [openai]\ntts: [openai]"), slog.New(slog.DiscardHandler))
	asr, _, err := f.recognizers(t.Context(), f.cfg.ASR)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asr.Open(t.Context(), providers.ASRRequest{}); err == nil || !strings.Contains(err.Error(), "no ASR of [openai] could be started") {
		t.Errorf("recognising: %v", err)
	}
	tts, err := f.voices(t.Context(), f.cfg.TTS)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range tts.Synthesize(t.Context(), providers.TTSRequest{Text: "x"}) {
		n++
		if err == nil || !strings.Contains(err.Error(), "no TTS of [openai] could be started") {
			t.Errorf("speaking: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("speaking failed %d times", n)
	}
}

// TestRulesKnowConfiguredModel: without a model the brain says that
// there is none; with one, that it does not answer.
func TestRulesKnowConfiguredModel(t *testing.T) {
	bare(t)
	for config, want := range map[string]string{
		"llm: [rules]": "No language model is configured",
		"llm: [dead, rules]\nproviders: {dead: {type: openai, model: m, base_url: 'http://127.0.0.1:1/v1'}}": "language model is not answering",
	} {
		cfg := mustLoadText(t, config)
		f := batchOf(cfg, slog.New(slog.DiscardHandler))
		members, of, err := f.models(t.Context(), f.cfg.LLM)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.think(textsOf(t), len(members) > 0); err != nil {
			t.Fatal(err)
		}
		llm, err := f.thinker(f.cfg.LLM, members, of)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for d, err := range llm.Generate(t.Context(), providers.LLMRequest{Language: "en", Messages: []providers.Message{{Role: providers.RoleUser, Content: "tell me a story"}}}) {
			if err != nil {
				t.Fatal(err)
			}
			said += d.Text
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s: said %q, want %q", config, said, want)
		}
	}
}

// TestSettingsReachEngines: what a section says is what the service is asked.
func TestSettingsReachEngines(t *testing.T) {
	bare(t)
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	f := batchOf(mustLoadText(t, `
asr: [s]
llm: [s]
tts: [s]
providers:
  s: {type: openai, base_url: `+cloud.URL()+`, api_key: k3y, model: m, asr_model: ears, tts_model: mouth, voice: {zh: anna, en: john},
      temperature: 0.25, max_tokens: 77, extra: {top_k: 5}, headers: {X-Team: blue}}
`), slog.New(slog.DiscardHandler))
	asr, _, err := f.recognizers(t.Context(), f.cfg.ASR)
	if err != nil {
		t.Fatal(err)
	}
	hear(t, asr)
	members, _, err := f.models(t.Context(), f.cfg.LLM)
	if err != nil {
		t.Fatal(err)
	}
	think(t, members[0])
	tts, err := f.voices(t.Context(), f.cfg.TTS)
	if err != nil {
		t.Fatal(err)
	}
	synthesise(t, tts)
	for role, want := range map[openaitest.Role]map[string]any{
		openaitest.Transcribe: {"model": "ears"},
		openaitest.Chat:       {"model": "m", "temperature": 0.25, "max_tokens": 77.0, "top_k": 5.0},
		openaitest.Speak:      {"model": "mouth", "voice": "anna"},
	} {
		r, err := cloud.Await(t.Context(), role, 1)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range want {
			got := model(r)
			if key != "model" {
				got = r.JSON()[key]
			}
			if got != value {
				t.Errorf("%s: %s is %v, want %v", role, key, got, value)
			}
		}
		if r.Header.Get("Authorization") != "Bearer k3y" || r.Header.Get("X-Team") != "blue" {
			t.Errorf("%s: headers %v", role, r.Header)
		}
	}
}

// Chains that agents name are made once each, and so is an engine that is in several.
func TestChainsOfAgentsAreShared(t *testing.T) {
	bare(t)
	cloud := fakeCloud(t)
	cfg := mustLoadText(t, `
asr: [c]
llm: [c, rules]
tts: [c]
agents:
  one: {llm: [d, rules], tts: [d], asr: [pocketsphinx]}
  two: {llm: [d, rules], tts: [d, c], vision: [d]}
  three: {voice: alto, llm: [c, rules]}
providers:
  c: {type: openai, api_key: k, model: m, base_url: '`+cloud.URL()+`'}
  d: {type: openai, api_key: k, model: n, base_url: '`+cloud.URL()+`'}
`)
	f := batchOf(cfg, slog.New(slog.DiscardHandler))
	t.Cleanup(f.Close)
	e, err := f.all(t.Context(), textsOf(t))
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := e.Agents["one"], e.Agents["two"], e.Agents["three"]
	if one.LLM != two.LLM || three.LLM != e.Main.LLM || one.LLM == e.Main.LLM || one.TTS == two.TTS || one.ASR == nil || two.ASR != nil || two.Vision == nil || three.TTS != nil {
		t.Errorf("%+v\n%+v\n%+v", one, two, three)
	}
	if one.Chinese || !e.Main.Chinese {
		t.Error("which recognisers know Chinese")
	}
	for _, line := range []string{"d: n at", "c: m at"} {
		n := 0
		for _, l := range f.report.lines {
			if strings.Contains(l, "TTS") && strings.Contains(l, line) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%q stands %d times in %q", line, n, f.report.lines)
		}
	}
}

func fakeCloud(t *testing.T) *openaitest.Server {
	t.Helper()
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cloud.Close() })
	return cloud
}
