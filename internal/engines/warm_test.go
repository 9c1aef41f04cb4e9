package engines

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
)

// cloudBatch makes engines of a config with one section for all three roles.
func cloudBatch(t *testing.T, section string) (*batch, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	config := "asr: [c]\nllm: [c]\ntts: [c]\nproviders: {c: {type: openai, api_key: k, model: m, " + section + "}}"
	f := batchOf(mustLoadText(t, config), logger)
	t.Cleanup(f.Close)
	return f, log
}

// TestWarmOpensOneConnection: the roles of a section share their connections,
// and the start opens one of them.
func TestWarmOpensOneConnection(t *testing.T) {
	bare(t)
	cloud := fakeCloud(t)
	f, log := cloudBatch(t, "base_url: '"+cloud.URL()+"'")
	if _, _, err := f.recognizers(t.Context(), f.cfg.ASR); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.models(t.Context(), f.cfg.LLM); err != nil {
		t.Fatal(err)
	}
	if _, err := f.voices(t.Context(), f.cfg.TTS); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.start.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := len(cloud.Requests(openaitest.Models)); n != 1 || len(f.start.Dials) != 3 || cloud.Total() != 1 {
		t.Errorf("%d requests, %d of them for models, by %d roles", cloud.Total(), n, len(f.start.Dials))
	}
	if log.Len() > 0 && strings.Contains(log.String(), "WARN") {
		t.Errorf("log %s", log)
	}
}

func TestUnreachableServiceLogged(t *testing.T) {
	bare(t)
	f, log := cloudBatch(t, "base_url: 'http://127.0.0.1:1/v1'")
	if _, _, err := f.models(t.Context(), f.cfg.LLM); err != nil {
		t.Fatal(err)
	}
	if err := f.start.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "service not reached") || !strings.Contains(text, "refused") {
		t.Errorf("log %s", text)
	}
}

// TestPatienceOfSection gives each role a patience of its own.
func TestPatienceOfSection(t *testing.T) {
	bare(t)
	f, _ := cloudBatch(t, "base_url: 'http://127.0.0.1:1/v1', first_token: 1s, first_sound: 2s, transcript: 3s")
	for want, of := range map[time.Duration]func(config.Provider) time.Duration{
		time.Second:     func(p config.Provider) time.Duration { return p.FirstToken },
		2 * time.Second: func(p config.Provider) time.Duration { return p.FirstSound },
		3 * time.Second: func(p config.Provider) time.Duration { return p.Transcript },
	} {
		if got := f.patience(of)["c"]; got != want {
			t.Errorf("patience %v, want %v", got, want)
		}
	}
	tts, err := f.voices(t.Context(), f.cfg.TTS)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tts.(providers.Warmer); !ok {
		t.Error("the agent cannot let the voices get ready")
	}
}
