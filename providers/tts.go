package providers

import (
	"context"
	"iter"
)

// TTSRequest is one sentence to be spoken.
type TTSRequest struct {
	Text     string // cleaned for speech: no markup, no emoji, no URLs
	Language string // of Text, a tag of BCP 47 in its shortest form; [ErrLanguage] from an engine that does not know it
	Voice    string // "" for the provider's own choice
}

// Sound is a piece of synthesised speech: PCM or whole Opus packets, never both.
// A sentence may have pieces of both kinds.
type Sound struct {
	Rate    int      // Hz of PCM
	PCM     []int16  // mono; valid until the next piece
	Packets [][]byte // whole Opus packets, 60 ms mono each; read-only
	// Provider is the name of the voice, if it is not the one asked: of a chain, the
	// member. "" is the one asked.
	Provider string
}

// TTS is a speech synthesiser.
type TTS interface {
	// Name is the provider's name in the config and in logs.
	Name() string
	// Synthesize streams the sound of one sentence. Leaving the loop stops the
	// work. An error is the last thing yielded. A sentence with nothing to say
	// yields nothing.
	Synthesize(ctx context.Context, req TTSRequest) iter.Seq2[Sound, error]
}
