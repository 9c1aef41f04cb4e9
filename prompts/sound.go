package prompts

import (
	"embed"

	"xiaozhi/internal/text"
)

// sounds holds the phrases that were rendered before: sounds/README.md.
//
//go:embed sounds
var sounds embed.FS

// SoundLanguage returns the language, Chinese or English, in which phrases are played to those who
// speak the one of the tag lang.
func SoundLanguage(lang string) text.Lang {
	return text.Lang(orChinese(lang).Pick(string(text.Chinese), string(text.English)))
}

// Sound returns the phrase id in [SoundLanguage] of lang as a WAV file (16 kHz, mono, 16
// bit), or nil where there is none. The caller owns the bytes.
func Sound(id, lang string) []byte {
	wav, err := sounds.ReadFile("sounds/" + id + "." + string(SoundLanguage(lang)) + ".wav")
	if err != nil {
		return nil
	}
	return wav
}
