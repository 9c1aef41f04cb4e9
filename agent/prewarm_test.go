package agent

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/speak"
	"xiaozhi/internal/text"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// What was rendered ahead needs no voice when it is said.
func TestPrewarm(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tts := &toneTTS{rate: 16000}
		o := Options{
			ASR: &scriptASR{}, LLM: &scriptLLM{}, TTS: tts, Prompts: set, Devices: NewDevices(),
			Sounds: speak.NewCache(set), Zone: time.UTC,
		}
		if err := Prewarm(t.Context(), o, []string{prompts.Greeting, prompts.Filler}, []text.Lang{text.Chinese, text.English}, ""); err != nil {
			t.Fatal(err)
		}
		if len(tts.said) != 4 {
			t.Errorf("said %q", tts.said)
		}
		tts.lines = []string{"!error"}
		v := connect(t, o, router.Options{})
		v.types(t, "hi xiaozhi")
		time.Sleep(5 * time.Second)
		if got := v.box.String(); len(tts.said) != 4 || !strings.Contains(got, "  405 sentence I'm here.\n   405 frames 15") {
			t.Errorf("said %q; the device got\n%s", tts.said, got)
		}
		v.bye()
	})
}

// In an agent's voice it is rendered apart, and found when that agent speaks.
func TestPrewarmInVoice(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		tts := &toneTTS{rate: 16000}
		o := Options{
			ASR: &scriptASR{}, LLM: &scriptLLM{}, TTS: tts, Prompts: set, Devices: NewDevices(), Sounds: speak.NewCache(set), Zone: time.UTC,
			Persona: func(name string) (Persona, bool) { return Persona{Name: "anna", Voice: "alto"}, name == "" },
		}
		for i, voice := range []string{"", "alto", "alto"} {
			if err := Prewarm(t.Context(), o, []string{prompts.Greeting}, []text.Lang{text.English}, voice); err != nil || len(tts.said) != min(i+1, 2) {
				t.Errorf("%d: said %q, %v", i, tts.said, err)
			}
		}
		tts.lines = []string{"!error"}
		v := connect(t, o, router.Options{})
		v.types(t, "hi xiaozhi")
		time.Sleep(5 * time.Second)
		if got := v.box.String(); len(tts.said) != 2 || !strings.Contains(got, "sentence I'm here.\n   405 frames 15") {
			t.Errorf("said %q; the device got\n%s", tts.said, got)
		}
		v.bye()
	})
}

func TestPrewarmFails(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		o := Options{TTS: &toneTTS{rate: 16000, lines: []string{"!error", "ok", "delay 1h"}}, Prompts: set, Sounds: speak.NewCache(set), Zone: time.UTC}
		err := Prewarm(t.Context(), o, []string{prompts.Greeting, prompts.OK, prompts.Filler}, []text.Lang{text.English}, "")
		if err == nil || !strings.Contains(err.Error(), "greeting (en)") || strings.Contains(err.Error(), "render ok") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// endlessTTS never comes to an end.
type endlessTTS struct{}

func (endlessTTS) Name() string { return "endless" }

func (endlessTTS) Synthesize(ctx context.Context, _ providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		for ctx.Err() == nil && yield(tone(16000, 1), nil) {
		}
	}
}

// A voice without an end costs no more than a long phrase.
func TestPrewarmEndless(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{TTS: endlessTTS{}, Prompts: set, Sounds: speak.NewCache(set)}
	if err := Prewarm(t.Context(), o, []string{prompts.OK}, []text.Lang{text.English}, ""); err == nil || !strings.Contains(err.Error(), "more than 8s of sound") {
		t.Errorf("got %v", err)
	}
}

// instantTTS is a voice that begins at once.
type instantTTS struct{ *toneTTS }

func (instantTTS) Capabilities() providers.Capabilities { return providers.Capabilities{Instant: true} }

// A voice that begins at once speaks nothing ahead.
func TestPrewarmOfInstantVoice(t *testing.T) {
	tts := &toneTTS{rate: 16000}
	o := Options{ASR: &scriptASR{}, LLM: &scriptLLM{}, TTS: instantTTS{tts}, Devices: NewDevices(), Zone: time.UTC}
	if err := Prewarm(t.Context(), o, []string{prompts.Greeting}, []text.Lang{text.English}, ""); err != nil || len(tts.said) > 0 {
		t.Errorf("said %q, %v", tts.said, err)
	}
}
