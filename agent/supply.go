package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/providers"
)

const (
	supplyPieces = 8                      // pieces synthesised ahead of the cutting, of at most pieceLength each: 0.5 s
	pieceLength  = 60 * time.Millisecond  // of sound
	aloneFor     = 100 * time.Millisecond // how long a request has the synthesiser to itself, if no sound comes earlier
)

// supply is the sound of one sentence on its way from the synthesiser, which
// works while the sentence before is still spoken (voice.md, behaviour 24).
type supply struct {
	utterable
	key     soundKey                // of the sound cache; zero: it is no fixed phrase
	packets [][]byte                // from the cache; nil: it is synthesised
	pieces  chan piece              // closed at the end of the sound; nil: nothing is synthesised
	begun   chan struct{}           // closed at its first piece, or its end
	failed  atomic.Bool             // its end was an error
	stop    context.CancelCauseFunc // ends the synthesis; called by whoever takes the pieces
}

// piece is a part of a sentence's sound, or the error that ends it.
type piece struct {
	pcm      []int16 // goes back to speaker.spare
	rate     int
	packets  [][]byte
	provider string // who speaks; "" is the one asked
	err      error
}

// feed opens a supply for each sentence in turn. It ends when the turn closes
// the sentences, or with ctx.
func (s *speaker) feed(ctx context.Context, wg *sync.WaitGroup, supplies chan<- *supply) {
	alone := time.NewTimer(time.Hour)
	defer alone.Stop()
	for {
		var u utterable
		var ok bool
		select {
		case <-ctx.Done():
			return
		case u, ok = <-s.sentences:
			if !ok {
				return
			}
		}
		s.pending.Add(1)
		next := s.supply(ctx, wg, u)
		select {
		case supplies <- next:
		case <-ctx.Done():
			next.stop(turn.ErrDone)
			return
		}
		if next.pieces == nil {
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

// supply begins to get the sound of a sentence, if it has to be got.
func (s *speaker) supply(ctx context.Context, wg *sync.WaitGroup, u utterable) *supply {
	next := &supply{utterable: u, stop: func(error) {}}
	if u.sound != nil || u.speech == "" {
		return next
	}
	if s.o.Sounds.fixed(u.speech) {
		next.key = s.o.Sounds.key(s, s.o.TTS.Name(), u.speech, u.language, s.voice)
		if next.packets = s.o.Sounds.get(next.key); next.packets != nil {
			return next
		}
	}
	next.pieces, next.begun = make(chan piece, supplyPieces), make(chan struct{})
	ctx, next.stop = context.WithCancelCause(ctx)
	wg.Go(func() {
		defer close(next.pieces)
		began := sync.OnceFunc(func() { close(next.begun) })
		defer began()
		if err := protect(s.log, "speech synthesis", func() error { return s.fetch(ctx, next, began) }); err != nil {
			next.failed.Store(true)
			began()
			give(ctx, next.pieces, piece{err: err})
		}
	})
	return next
}

// fetch synthesises one sentence into its supply.
func (s *speaker) fetch(ctx context.Context, to *supply, began func()) error {
	soundCtx, patience := newPatience(ctx, s.o.SoundTimeout)
	defer patience.end()
	s.timing.ttsStart(s.o.TTS.Name())
	request := providers.TTSRequest{Text: to.speech, Language: to.language, Voice: s.voice}
	for sound, err := range s.o.TTS.Synthesize(soundCtx, request) {
		if err != nil {
			if soundCtx.Err() != nil {
				err = context.Cause(soundCtx)
			}
			return fmt.Errorf("synthesise: %w", err)
		}
		patience.pause() // it waits until its sound is needed
		s.timing.ttsSound()
		began()
		to.length.add(durationOf(sound))
		if !s.hold(ctx, to, sound) {
			return context.Cause(ctx)
		}
		patience.resume()
	}
	if soundCtx.Err() != nil {
		return fmt.Errorf("synthesise: %w", context.Cause(soundCtx))
	}
	to.length.whole.Store(true)
	return nil
}

// durationOf is how long a piece of sound lasts.
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

// hold copies a piece of sound into the supply, and waits while enough is there.
// False: nobody wants it any more.
func (s *speaker) hold(ctx context.Context, to *supply, sound providers.Sound) bool {
	if len(sound.Packets) > 0 && !give(ctx, to.pieces, piece{packets: slices.Clone(sound.Packets), provider: sound.Provider}) {
		return false
	}
	most := max(1, int(int64(sound.Rate)*int64(pieceLength)/int64(time.Second)))
	for pcm := range slices.Chunk(sound.PCM, most) {
		var buf []int16
		select {
		case buf = <-s.spare:
		default:
		}
		if !give(ctx, to.pieces, piece{pcm: append(buf[:0], pcm...), rate: sound.Rate, provider: sound.Provider}) {
			return false
		}
	}
	return true
}

// give passes a piece on; false: ctx ended first.
func give(ctx context.Context, to chan<- piece, p piece) bool {
	select {
	case to <- p:
		return true
	case <-ctx.Done():
		return false
	}
}
