package fishspeech

import (
	"encoding/json"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/fishspeech"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

const sentence = "it will be sunny, and warm"

func TestOpusIsPassedThrough(t *testing.T) {
	v, err := NewCloud(service.Section{Name: "x", BaseURL: fake.New(t).URL(), Key: servicetest.Key, Format: "opus"})
	if err != nil {
		t.Fatal(err)
	}
	packets := 0
	for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: sentence}) {
		if err != nil {
			t.Fatal(err)
		}
		packets += len(sound.Packets)
	}
	if packets == 0 {
		t.Error("it was decoded")
	}
}

func TestServerAndCloudAreAsked(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(service.Section) (providers.TTS, error)
		model string
		rate  int
		want  map[string]any
	}{
		"at home": {NewLocal, "", 44100, map[string]any{"text": sentence, "format": "wav", "streaming": true, "reference_id": "ada"}},
		"cloud":   {NewCloud, "s1", 24000, map[string]any{"text": sentence, "format": "pcm", "sample_rate": 24000.0, "reference_id": "ada"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t)
			v, err := test.make(service.Section{Name: "x", BaseURL: s.URL(), Key: servicetest.Key, Voices: map[string]string{"en": "ada"}})
			if err != nil {
				t.Fatal(err)
			}
			samples, rate := 0, 0
			for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: sentence, Language: "en"}) {
				if err != nil {
					t.Fatal(err)
				}
				samples, rate = samples+len(sound.PCM), sound.Rate
			}
			if samples < rate/2 || rate != test.rate {
				t.Errorf("%d samples at %d Hz, want them at %d", samples, rate, test.rate)
			}
			asked := s.Requests()[0]
			var got map[string]any
			if err := json.Unmarshal(asked.Body, &got); err != nil {
				t.Fatal(err)
			}
			for key, want := range test.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
			if model := asked.Header.Get("Model"); model != test.model {
				t.Errorf("model %q, want %q", model, test.model)
			}
		})
	}
	if _, err := NewLocal(service.Section{Format: "mp3"}); err == nil {
		t.Error("a format that cannot be streamed: no error")
	}
}
