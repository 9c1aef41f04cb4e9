package dashscope

import (
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

func TestLanguagesHaveNames(t *testing.T) {
	for tag, want := range map[string]string{"zh-CN": "Chinese", "en": "English", "pt-BR": "Portuguese", "vi": "Auto", "": "Auto"} {
		if got := languageType(tag); got != want {
			t.Errorf("%q: %s, want %s", tag, got, want)
		}
	}
}
