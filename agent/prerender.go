package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	segments "xiaozhi/internal/text/sentence"
	"xiaozhi/internal/wire"
)

// Bounds of one phrase that is rendered ahead: how long it may take, and last.
const (
	renderWithin = 20 * time.Second
	renderMost   = 8 * time.Second
	// renderPause is how long each frame takes: a tenth of a core, so that who
	// speaks meanwhile does not notice.
	renderPause = 5 * time.Millisecond
)

var errEndless = fmt.Errorf("more than %v of sound", renderMost)

// RenderPhrases speaks fixed phrases into o.Sounds, so that they are there when
// they are first needed. What cannot be rendered now is synthesised then. The
// error names all that failed.
func RenderPhrases(ctx context.Context, o Options, ids, languages []string) error {
	opts := o.withDefaults()
	var failed error
	for _, language := range languages {
		for _, id := range ids {
			if err := renderPhrase(ctx, &opts, id, language); err != nil {
				failed = errors.Join(failed, fmt.Errorf("render %s (%s): %w", id, language, err))
			}
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	return failed
}

// renderPhrase has a speaker without a device speak one phrase.
func renderPhrase(ctx context.Context, o *Options, id, language string) error {
	ctx, stop := context.WithTimeout(ctx, renderWithin)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(turn.ErrDone)
	s := newSpeaker(o, slog.New(slog.DiscardHandler), newFloor(nobody{}, 0, o.Reply, o.Lead), &timing{}, "", func() {})
	var wg sync.WaitGroup
	wg.Go(func() {
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		length := time.Duration(0)
		for range s.frames { // nobody listens
			if length += o.Reply.Frame; length > renderMost {
				cancel(errEndless)
			}
			_ = wait(ctx, timer, renderPause) // at its end the frames end too
		}
	})
	text := o.Prompts.Phrase(id, language)
	split := segments.Splitter{}
	for _, segment := range append(split.Feed(text), split.Flush()...) {
		s.sentences <- utterable{sentence: newSentence(segment, language), length: new(soundLength)}
	}
	close(s.sentences)
	err := s.synthesize(ctx)
	wg.Wait()
	return err
}

// nobody is an Outbox without a device.
type nobody struct{}

// Send throws the message away.
func (nobody) Send(wire.Message) {}

// Audio throws the packet away.
func (nobody) Audio(uint64, []byte) (uint32, bool) { return 0, true }

// HangUp does nothing.
func (nobody) HangUp(error) {}

// Lag is 0.
func (nobody) Lag() time.Duration { return 0 }
