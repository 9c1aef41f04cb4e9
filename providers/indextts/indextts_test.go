package indextts

import (
	"encoding/json"
	"reflect"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/indextts"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

const sentence = "it will be sunny, and warm"

func TestEveryRouteIsAsked(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(testing.TB) *servicetest.Server
		api   string
		voice string
		path  string
		want  map[string]any
	}{
		"tts":     {fake.New, "", "ada", "/tts", map[string]any{"text": sentence, "character": "ada"}},
		"patched": {fake.Patched, "", "ada", "/tts", map[string]any{"text": sentence, "character": "ada"}},
		"url":     {fake.New, "url", "a.wav, b.wav", "/tts_url", map[string]any{"text": sentence, "audio_paths": []any{"a.wav", "b.wav"}}},
		"speech":  {fake.New, "speech", "ada", "/audio/speech", map[string]any{"input": sentence, "voice": "ada"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.make(t)
			v, err := NewTTS(service.Section{Name: "x", BaseURL: s.URL(), Voices: map[string]string{"": test.voice}, Settings: map[string]any{"api": test.api}})
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
			if samples < rate/2 || rate != 24000 {
				t.Errorf("%d samples at %d Hz", samples, rate)
			}
			asked := s.Requests()[0]
			var got map[string]any
			if err := json.Unmarshal(asked.Body, &got); err != nil || asked.Path != test.path {
				t.Errorf("asked %s %v, error %v, want %s", asked.Path, got, err, test.path)
			}
			for key, want := range test.want {
				if !reflect.DeepEqual(got[key], want) {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
		})
	}
	for name, s := range map[string]service.Section{"no voice": {}, "api": {Voices: map[string]string{"": "a"}, Settings: map[string]any{"api": "v9"}}} {
		if _, err := NewTTS(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
