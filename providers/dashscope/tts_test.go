package dashscope

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/dashscope"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

func TestSoundComesInEveryFormat(t *testing.T) {
	t.Parallel()
	const words = "a sentence of some length"
	want := time.Duration(utf8.RuneCountInString(words)) * servicetest.PerRune
	s := fake.New(t)
	for _, format := range Kind().Formats {
		v, err := newTTS(service.Section{Name: "x", Key: servicetest.Key, BaseURL: s.URL() + "/compatible-mode/v1", Format: format, Rate: 16000})
		if err != nil {
			t.Fatal(err)
		}
		got, packets := time.Duration(0), 0
		for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: words, Language: "en-US"}) {
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			packets += len(sound.Packets)
			got += time.Duration(len(sound.PCM))*time.Second/time.Duration(max(sound.Rate, 1)) + time.Duration(len(sound.Packets))*60*time.Millisecond
		}
		if got < want-60*time.Millisecond || got > want+200*time.Millisecond || (packets > 0) != (format == "opus") {
			t.Errorf("%s: %v of sound in %d packets, want %v", format, got, packets, want)
		}
	}
}

// Plain requests give bare sound of one rate, whatever the settings want.
func TestPlainSoundHasOneFormat(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	v, err := newTTS(service.Section{
		Name: "x", Key: servicetest.Key, BaseURL: s.URL(), Format: "opus", Rate: 16000, Models: map[service.Role]string{service.TTS: "qwen3-tts-flash"},
	})
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: strings.Repeat("One. ", 110)}) {
		if err != nil || sound.Rate != 24000 {
			t.Fatalf("%d Hz, %v", sound.Rate, err)
		}
		samples += len(sound.PCM)
	}
	if n := len(s.Requests()); n != 2 || samples < 500*960 {
		t.Errorf("%d requests, %d samples", n, samples)
	}
}

func TestLanguagesHaveNames(t *testing.T) {
	for tag, want := range map[string]string{"zh-CN": "Chinese", "en": "English", "pt-BR": "Portuguese", "vi": "Auto", "": "Auto"} {
		if got := languageType(tag); got != want {
			t.Errorf("%q: %s, want %s", tag, got, want)
		}
	}
}
