package providers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"xiaozhi/audio"
)

// ASRRequest describes one utterance to be recognised.
type ASRRequest struct {
	Rate     int      // Hz; always 16000 from the conversation
	Language string   // hint: a tag of BCP 47 in its shortest form (zh, en, ja, pt-PT), or ""; never a reason to refuse
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

// Streamer is a recogniser that may give partial transcripts while the user speaks.
type Streamer interface {
	// Streams says whether it does: then what it has understood so far is known at a
	// pause, without asking for the end of the utterance.
	Streams() bool
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
	Language string // that was heard, a tag of BCP 47; "" when the recogniser does not say: what it was told is no answer
	// Rejected is set on a final transcript when the recogniser judges by its
	// own measured score that this was not speech in a language it knows. Text then
	// holds its best guess, for the log (at debug level) only.
	Rejected bool
	Provider string // the name of the recogniser
}

// MaxUtterance is the length of the sound that a stream holds, in seconds:
// the monologue cap of 60 s and what may arrive while a turn is being ended.
const MaxUtterance = 65

// Errors of a stream that is used wrongly.
var (
	ErrUtteranceClosed = errors.New("the utterance is already complete")
	ErrUtteranceFull   = fmt.Errorf("the utterance is longer than %d s", MaxUtterance)
	errRangedTwice     = errors.New("transcripts were already asked for")
)

// RecognizeFunc recognises one whole utterance: 16 bit mono PCM at req.Rate. It
// returns within 100 ms of the end of ctx and keeps nothing of pcm.
type RecognizeFunc func(ctx context.Context, pcm []int16, req ASRRequest) (Transcript, error)

// OpenUtterance makes a stream of a recogniser that wants the whole utterance:
// Write collects, CloseWrite lets the request begin, and Transcripts yields the
// one final transcript.
//
// It starts no goroutine: the request runs on the goroutine that ranges over
// Transcripts, so it can never outlive the loop.
func OpenUtterance(ctx context.Context, req ASRRequest, recognize RecognizeFunc) ASRStream {
	if req.Rate <= 0 {
		req.Rate = 16000
	}
	u := &utterance{limit: MaxUtterance * req.Rate, complete: make(chan struct{})}
	u.recognize = func() (Transcript, error) {
		select {
		case <-u.complete:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return Transcript{}, err
		}
		final, err := recognize(ctx, u.take(), req)
		if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
			return Transcript{}, ctxErr
		}
		final.Final = true
		return final, err
	}
	return u
}

// utterance is the ASRStream of OpenUtterance.
type utterance struct {
	limit     int // samples
	recognize func() (Transcript, error)
	complete  chan struct{} // closed by CloseWrite, under mu

	mu     sync.Mutex
	pcm    []int16
	closed bool
	ranged bool
}

// Write keeps a copy of pcm.
func (u *utterance) Write(pcm []int16) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return fmt.Errorf("write to utterance: %w", ErrUtteranceClosed)
	}
	if len(u.pcm)+len(pcm) > u.limit {
		return fmt.Errorf("write to utterance: %w", ErrUtteranceFull)
	}
	u.pcm = append(audio.Grow(u.pcm, len(pcm)), pcm...)
	return nil
}

// CloseWrite lets the request begin. Calling it again changes nothing.
func (u *utterance) CloseWrite() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.closed = true
		close(u.complete)
	}
	return nil
}

// Transcripts waits for CloseWrite and yields the final transcript or the error.
func (u *utterance) Transcripts() iter.Seq2[Transcript, error] {
	return func(yield func(Transcript, error) bool) {
		u.mu.Lock()
		again := u.ranged
		u.ranged = true
		u.mu.Unlock()
		if again {
			yield(Transcript{}, fmt.Errorf("recognize utterance: %w", errRangedTwice))
			return
		}
		final, err := u.recognize()
		if err != nil {
			final = Transcript{}
		}
		yield(final, err)
	}
}

// take hands the sound over, so that it is freed with the request.
func (u *utterance) take() []int16 {
	u.mu.Lock()
	defer u.mu.Unlock()
	pcm := slices.Clip(u.pcm)
	u.pcm = nil
	return pcm
}
