package prompts

import "embed"

// sounds holds the phrases that were rendered before: sounds/README.md.
//
//go:embed sounds
var sounds embed.FS

// Sound returns the phrase id in the language lang as a WAV file (16 kHz, mono, 16
// bit), or nil where there is none. The caller owns the bytes.
func Sound(id, lang string) []byte {
	wav, err := sounds.ReadFile("sounds/" + id + "." + language(lang) + ".wav")
	if err != nil {
		return nil
	}
	return wav
}
