package gptsovits

import (
	"encoding/json"
	"strings"
	"testing"

	fake "xiaozhi/internal/servicetest/gptsovits"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const sentence = "it will be sunny, and warm"

// speak speaks one sentence and returns the samples, their rate and the error.
func speak(t *testing.T, v providers.TTS, req providers.TTSRequest) (samples, rate int, err error) {
	t.Helper()
	for sound, err := range v.Synthesize(t.Context(), req) {
		if err != nil {
			return samples, rate, err
		}
		samples, rate = samples+len(sound.PCM), sound.Rate
	}
	return samples, rate, nil
}

func TestBothInterfacesAreAsked(t *testing.T) {
	for name, test := range map[string]struct {
		settings map[string]any
		voice    string
		language string
		want     map[string]any
	}{
		"newer": {nil, "ref.wav|some words|ja", "zh", map[string]any{
			"text": sentence, "text_lang": "zh", "ref_audio_path": "ref.wav", "prompt_text": "some words", "prompt_lang": "ja", "media_type": "wav", "streaming_mode": true, "top_k": 5.0}},
		"a language it has no word for": {map[string]any{"ref_audio": "a.wav", "prompt_lang": "en"}, "", "pt-BR", map[string]any{
			"text_lang": "auto", "ref_audio_path": "a.wav", "prompt_lang": "en"}},
		"older": {map[string]any{"api": "v1"}, "ref.wav|some words", "en-GB", map[string]any{
			"text": sentence, "text_language": "en", "refer_wav_path": "ref.wav", "prompt_text": "some words", "prompt_language": "zh", "speed": 1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t)
			v, err := NewTTS(service.Section{Name: "x", BaseURL: s.URL(), Settings: test.settings, Speed: 1.5, Extra: map[string]any{"top_k": 5}})
			if test.settings == nil {
				v, err = NewTTS(service.Section{Name: "x", BaseURL: s.URL() + "/", Voices: map[string]string{"": "default.wav"}, Extra: map[string]any{"top_k": 5}})
			}
			if err != nil {
				t.Fatal(err)
			}
			samples, rate, err := speak(t, v, providers.TTSRequest{Text: sentence, Language: test.language, Voice: test.voice})
			if err != nil || samples < rate/2 {
				t.Fatalf("%d samples at %d Hz, error %v", samples, rate, err)
			}
			var got map[string]any
			if err := json.Unmarshal(s.Requests()[0].Body, &got); err != nil {
				t.Fatal(err)
			}
			for key, want := range test.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v", key, got[key], want)
				}
			}
		})
	}
}

func TestSectionIsChecked(t *testing.T) {
	for name, s := range map[string]service.Section{
		"no voice": {},
		"format":   {Format: "ogg", Voices: map[string]string{"": "a.wav"}},
		"proxy":    {Proxy: "ftp://x", Voices: map[string]string{"": "a.wav"}},
	} {
		if _, err := NewTTS(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRefusalsAreJudged(t *testing.T) {
	for body, want := range map[string]transport.Refusal{
		`{"message":"text is required"}`:                                         {Kind: providers.BadRequest, Text: "text is required"},
		`{"message":"tts failed","Exception":"CUDA out of memory"}`:              {Kind: providers.Unavailable, Text: "tts failed: CUDA out of memory"},
		`{"message":"tts failed","Exception":"[Errno 2] No such file: ref.wav"}`: {Kind: providers.BadRequest, Text: "tts failed: [Errno 2] No such file: ref.wav (is the clip of the voice there?)"},
		`<html>502`: {Kind: providers.BadRequest, Text: "<html>502"},
	} {
		r := transport.Refusal{Kind: providers.BadRequest, Text: body}
		if judge(&r); r != want {
			t.Errorf("%s: %+v, want %+v", body, r, want)
		}
	}
}

// A server that was told to send ogg sends Vorbis: that is said.
func TestVorbisIsNamed(t *testing.T) {
	v, err := NewTTS(service.Section{Name: "x", BaseURL: fake.New(t).URL(), Voices: map[string]string{"": "a.wav"}, Extra: map[string]any{"media_type": "ogg"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := speak(t, v, providers.TTSRequest{Text: sentence}); err == nil || !strings.Contains(err.Error(), "Vorbis") {
		t.Errorf("got %v", err)
	}
}
