package speak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/idle"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

const (
	streamChunks = 8                      // synthesised ahead of the cutting, of at most chunkLength each: 0.5 s
	chunkLength  = 60 * time.Millisecond  // of sound
	aloneFor     = 100 * time.Millisecond // how long a request has the synthesiser to itself, if no sound comes earlier
)

// stream is the sound of one segment on its way from the synthesiser, which works
// while the segment before is still spoken (docs/behaviours.md 24).
type stream struct {
	Segment
	key     cacheKey                // zero: it is no fixed phrase
	packets [][]byte                // from the cache; nil: it is synthesised
	chunks  chan chunk              // closed at the end of the sound; nil: nothing is synthesised
	begun   chan struct{}           // closed at its first chunk, or its end
	failed  atomic.Bool             // its end was an error
	stop    context.CancelCauseFunc // ends the synthesis; called by whoever takes the chunks
}

// chunk is a part of a segment's sound, or the error that ends it.
type chunk struct {
	pcm      []int16 // goes back to the pool
	rate     int
	packets  [][]byte
	provider string // the voice; "" is the one asked
	err      error
}

// prefetch opens a stream for each segment in turn. It ends when there are no
// more segments, or with ctx.
func (s *Speaker) prefetch(ctx context.Context, wg *sync.WaitGroup, streams chan<- *stream) {
	alone := time.NewTimer(time.Hour)
	defer alone.Stop()
	for {
		var u *Segment
		var ok bool
		select {
		case <-ctx.Done():
			return
		case u, ok = <-s.queue.segments:
			if !ok {
				return
			}
		}
		next := s.open(ctx, wg, *u)
		select {
		case streams <- next:
		case <-ctx.Done():
			next.stop(context.Cause(ctx))
			return
		}
		if next.chunks == nil {
			continue
		}
		alone.Reset(aloneFor) // two requests at once must not make the first one slower
		select {
		case <-next.begun:
			if next.failed.Load() {
				return // nothing is spoken any more
			}
		case <-alone.C:
		case <-ctx.Done():
			return
		}
	}
}

// open begins to get the sound of a segment, if it has to be got.
func (s *Speaker) open(ctx context.Context, wg *sync.WaitGroup, u Segment) *stream {
	next := &stream{Segment: u, stop: func(error) {}}
	if u.Sound != nil || u.Speech == "" || u.Recorded {
		return next
	}
	if s.o.Cache.fixed(u.Speech) {
		next.key = s.o.key(s.o.TTS.Name(), u.Speech, lang(u.Language), s.voice)
		if next.packets = s.o.Cache.get(next.key); next.packets != nil {
			return next
		}
	}
	next.chunks, next.begun = make(chan chunk, streamChunks), make(chan struct{})
	ctx, next.stop = context.WithCancelCause(ctx)
	wg.Go(func() {
		defer close(next.chunks)
		began := sync.OnceFunc(func() { close(next.begun) })
		defer began()
		if err := Protect(s.log, "speech synthesis", func() error { return s.fetch(ctx, next, began) }); err != nil {
			next.failed.Store(!providers.LacksLanguage(err)) // the next one may be in another
			began()
			give(ctx, next.chunks, chunk{err: err})
		}
	})
	return next
}

// fetch synthesises one segment into its stream.
func (s *Speaker) fetch(ctx context.Context, to *stream, began func()) error {
	note := s.times.Of(s.times.VoiceAsked(s.o.TTS.Name()))
	request := providers.TTSRequest{Text: to.Speech, Language: lang(to.Language), Voice: s.voice}
	err := s.fetchAs(timeline.WithAttempts(ctx, note), request, to, began)
	if words, home := s.athome(to.Segment); words != "" && providers.LacksLanguage(err) {
		request.Text, request.Language = words, lang(home)
		err = s.fetchAs(timeline.WithAttempts(ctx, note), request, to, began)
	}
	return err
}

// athome returns the words of a phrase in the language that the program has sounds of, and that language; "" for what is
// no phrase, or one with gaps to fill.
func (s *Speaker) athome(u Segment) (words string, home text.Lang) {
	home = prompts.SoundLanguage(lang(s.o.Home))
	if u.Fallback == "" || u.Language == home {
		return "", home
	}
	words = s.o.Prompts.Phrase(u.Fallback, lang(home))
	if words == u.Fallback || strings.Contains(words, "{") {
		return "", home
	}
	return words, home
}

// fetchAs synthesises a request into a stream.
func (s *Speaker) fetchAs(ctx context.Context, request providers.TTSRequest, to *stream, began func()) error {
	soundCtx, limit := idle.WithTimeout(ctx, s.o.SoundTimeout)
	defer limit.Close()
	for sound, err := range s.o.TTS.Synthesize(soundCtx, request) {
		if err != nil {
			if soundCtx.Err() != nil {
				err = context.Cause(soundCtx)
			}
			return fmt.Errorf("synthesise: %w", err)
		}
		limit.Pause() // it waits until its sound is needed
		s.times.VoiceHeard()
		began()
		to.progress.add(durationOf(sound))
		if !s.put(ctx, to, sound) {
			return context.Cause(ctx)
		}
		limit.Resume()
	}
	if soundCtx.Err() != nil {
		return fmt.Errorf("synthesise: %w", context.Cause(soundCtx))
	}
	to.progress.whole.Store(true)
	return nil
}

// durationOf returns how long a piece of sound lasts.
func durationOf(sound providers.Sound) time.Duration {
	d := audio.Format{Rate: sound.Rate}.Duration(len(sound.PCM))
	for _, p := range sound.Packets {
		length, err := audio.PacketDuration(p)
		if err == nil { // else it is met again where it is played
			d += length
		}
	}
	return d
}

// put copies a piece of sound into a stream, and waits while enough is there.
// False: it is not wanted any more.
func (s *Speaker) put(ctx context.Context, to *stream, sound providers.Sound) bool {
	if len(sound.Packets) > 0 && !give(ctx, to.chunks, chunk{packets: slices.Clone(sound.Packets), provider: sound.Provider}) {
		return false
	}
	most := max(1, int(int64(sound.Rate)*int64(chunkLength)/int64(time.Second)))
	for pcm := range slices.Chunk(sound.PCM, most) {
		if !give(ctx, to.chunks, chunk{pcm: s.pool.chunks.copyOf(pcm), rate: sound.Rate, provider: sound.Provider}) {
			return false
		}
	}
	return true
}

// give passes a chunk on; false: ctx ended first.
func give(ctx context.Context, to chan<- chunk, c chunk) bool {
	select {
	case to <- c:
		return true
	case <-ctx.Done():
		return false
	}
}
