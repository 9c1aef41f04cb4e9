package speak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/sentence"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Bounds of one phrase that is rendered ahead: how long it may take, and last.
const (
	prewarmWithin = 20 * time.Second
	prewarmMost   = 8 * time.Second
	// prewarmPause is how long each frame takes: a tenth of a core, so that replies
	// that go on meanwhile are not late.
	prewarmPause = 5 * time.Millisecond
)

var errEndless = fmt.Errorf("more than %v of sound", prewarmMost)

// Prewarm speaks fixed phrases in a voice into o.Cache, so that they are there when they are
// first needed. What cannot be rendered now is synthesised then. A voice that begins at once speaks
// nothing ahead. The error names all that failed.
func Prewarm(ctx context.Context, o *Options, ids []string, languages []text.Lang, voice string) error {
	if providers.CapabilitiesOf(o.TTS).Instant {
		return nil
	}
	var failed error
	for _, l := range languages {
		for _, id := range ids {
			if err := prewarm(ctx, o, id, l, voice); err != nil {
				failed = errors.Join(failed, fmt.Errorf("render %s (%s): %w", id, l, err))
			}
			if ctx.Err() != nil {
				return failed
			}
		}
	}
	return failed
}

// Preload encodes the embedded sounds of phrases into o.Cache, as they are: there is
// no time for an engine, and little for an encoder, when they have to be said. Without a cache there
// is nothing to do.
func Preload(o *Options, ids ...string) error {
	if o.Cache == nil {
		return nil
	}
	for _, l := range []text.Lang{text.Chinese, text.English} {
		for _, id := range ids {
			key := preloadKey{id, lang(l), o.Reply, o.Coding}
			packets, done := preloaded.Get(key)
			if !done {
				var err error
				if packets, err = encodeSound(o, prompts.Sound(id, lang(l))); err != nil {
					return fmt.Errorf("encode the phrase %s of %s: %w", id, l, err)
				}
				preloaded.Put(key, packets, 0)
			}
			o.Cache.put(o.key(embedded, id, lang(l), ""), packets)
		}
	}
	return nil
}

// preloaded keeps the embedded sounds that Preload has encoded, for every change of settings makes a cache anew.
var preloaded = lru.New[preloadKey, [][]byte](16, 0)

// preloadKey is all that decides how an embedded sound is encoded.
type preloadKey struct {
	id, language string
	format       audio.Format
	coding       audio.Coding
}

// encodeSound encodes a WAV file as devices play it, the last frame filled up with silence.
func encodeSound(o *Options, wav []byte) ([][]byte, error) {
	format := o.Reply
	pcm, rate, err := file.ReadWAV(bytes.NewReader(wav))
	if err != nil {
		return nil, err
	}
	conv, err := audio.NewResampler(rate, format.Rate)
	if err != nil {
		return nil, err
	}
	pcm = conv.Flush(conv.Write(nil, pcm))
	if over := len(pcm) % format.Samples(); over > 0 {
		pcm = append(pcm, make([]int16, format.Samples()-over)...)
	}
	return encodeAll(o, pcm, nil)
}

// prewarm has a speaker without a device speak one phrase.
func prewarm(ctx context.Context, o *Options, id string, l text.Lang, voice string) error {
	ctx, stop := context.WithTimeout(ctx, prewarmWithin)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(turn.ErrDone)
	player := NewPlayer(noDevice{}, 0, o.Reply, o.Coding, o.Lead)
	s := NewSpeaker(o, slog.New(slog.DiscardHandler), player, timeline.New(timeline.Times{}), voice, atOnce(player))
	var wg sync.WaitGroup
	wg.Go(func() {
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		length := time.Duration(0)
		for range s.frames {
			if length += o.Reply.Frame; length > prewarmMost {
				cancel(errEndless)
			}
			timer.Reset(prewarmPause)
			select {
			case <-timer.C:
			case <-ctx.Done(): // at its end the frames end too
			}
		}
	})
	words := o.Prompts.Phrase(id, lang(l))
	split := sentence.Splitter{Lang: l, Words: o.Prompts.Words(l)}
	var err error
	for _, piece := range append(split.Feed(words), split.Flush()...) {
		err = errors.Join(err, s.Say(ctx, NewSegment(piece, l, 0)))
	}
	s.Close()
	err = errors.Join(err, s.Synthesize(ctx))
	wg.Wait()
	return err
}

// atOnce has a player begin as soon as there is something to be heard.
func atOnce(p *Player) func(turn.Event) {
	return func(e turn.Event) {
		if _, ok := e.(turn.Ready); ok {
			p.Start()
		}
	}
}

// noDevice is an Outbox that throws everything away.
type noDevice struct{}

// Send throws the message away.
func (noDevice) Send(wire.Message) {}

// Audio throws the packet away.
func (noDevice) Audio(uint64, []byte) (uint32, bool) { return 0, true }

// Lag is 0.
func (noDevice) Lag() time.Duration { return 0 }

// HangUp does nothing.
func (noDevice) HangUp(error) {}
