package providers

import (
	"context"
	"iter"
)

// ASRRequest describes one utterance to be recognised.
type ASRRequest struct {
	Rate     int      // Hz; always 16000 from the conversation
	Language string   // hint: "zh", "en" or ""; never a reason to refuse
	Phrases  []string // what is likely to be said (commands, tool names); may be nil
}

// ASR is a speech recogniser.
type ASR interface {
	// Name is the provider's name in the config and in logs.
	Name() string
	// Open begins one utterance. It returns at once: waiting for a free
	// decoder or a connection happens behind the stream.
	Open(ctx context.Context, req ASRRequest) (ASRStream, error)
}

// ASRStream is one utterance. Write and CloseWrite are called by one goroutine,
// Transcripts is ranged over by another. Ending the context of Open frees it.
type ASRStream interface {
	// Write hands over PCM at the rate of the request. It copies pcm and does
	// not wait for the recogniser: sound that cannot be taken is buffered,
	// at most 65 s of it, after which Write fails.
	Write(pcm []int16) error
	// CloseWrite says that the utterance is complete.
	CloseWrite() error
	// Transcripts yields partial transcripts and then exactly one final one,
	// or an error, and ends. Leaving the loop frees the stream.
	Transcripts() iter.Seq2[Transcript, error]
}

// Transcript is the text of an utterance, so far or as a whole.
type Transcript struct {
	Text     string // "" in a final one: nothing was said
	Final    bool
	Language string // "zh", "en", or "" when the recogniser does not say
	// Rejected is set on a final transcript when the recogniser judges by its
	// own measured score that this was not speech in a language it knows. Text then
	// holds its best guess, for the log (at debug level) only.
	Rejected bool
	Provider string // the name of the recogniser
}
