package services

import (
	"context"
	"iter"

	"xiaozhi/providers"
)

// named speaks with one voice, whatever is asked for.
type named struct {
	providers.TTS
	voice string
}

// Synthesize implements [providers.TTS].
func (n named) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	req.Voice = n.voice
	return n.TTS.Synthesize(ctx, req)
}
