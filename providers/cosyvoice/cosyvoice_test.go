package cosyvoice

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/cosyvoice"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

const sentence = "it will be sunny, and warm"

func TestEveryModeIsAsked(t *testing.T) {
	clip := filepath.Join(t.TempDir(), "ref.wav")
	if err := os.WriteFile(clip, append(servicetest.WAV(16000, 3200), make([]byte, 3200)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, test := range map[string]struct {
		settings map[string]any
		rate     int
	}{
		sft:          {nil, 22050},
		instruct:     {map[string]any{"instruct": "cheerfully"}, 22050},
		zeroShot:     {map[string]any{"prompt_text": "some words"}, 24000},
		crossLingual: {map[string]any{}, 24000},
		instructClip: {map[string]any{"instruct": "cheerfully"}, 24000},
	} {
		t.Run(mode, func(t *testing.T) {
			s := fake.New(t)
			settings := map[string]any{"mode": mode, "prompt_wav": clip}
			maps.Copy(settings, test.settings)
			v, err := NewTTS(service.Section{Name: "x", BaseURL: s.URL(), Settings: settings})
			if err != nil {
				t.Fatal(err)
			}
			samples, rate := 0, 0
			for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: sentence, Language: "zh"}) {
				if err != nil {
					t.Fatal(err)
				}
				samples, rate = samples+len(sound.PCM), sound.Rate
			}
			if want := len(servicetest.Speech(sentence, fake.Rate)) / 2; samples != want || rate != test.rate {
				t.Errorf("%d samples at %d Hz, want %d at %d", samples, rate, want, test.rate)
			}
		})
	}
}

func TestSectionIsChecked(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"mode":           {"mode": "sing"},
		"no clip":        {"mode": crossLingual},
		"an absent clip": {"mode": crossLingual, "prompt_wav": "/nowhere/a.wav"},
		"no words":       {"mode": zeroShot, "prompt_wav": "/nowhere/a.wav"},
	} {
		if _, err := NewTTS(service.Section{Settings: settings}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
