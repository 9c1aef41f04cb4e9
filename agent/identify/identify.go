// Package identify listens in on utterances to say who is speaking, beside their recogniser and never before it: nothing waits
// for what it finds.
package identify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/listen"
	"xiaozhi/agent/turn"
	"xiaozhi/providers"
	"xiaozhi/voices"
)

const (
	firstLook = 3 * providers.VoiceRate / 2 // samples: so much sound is looked at without a pause
	lookTime  = 10 * time.Second            // that a look may take
	mostHeard = 8 * providers.VoiceRate     // samples that are kept of an utterance
	mostKept  = int(providers.MaxVoice/time.Second) * providers.VoiceRate
)

// Book knows people by their voices. [voices.Book] is one. Its methods may be called at the same time.
type Book interface {
	// On reports whether there is anybody to be known.
	On() bool
	// Identify says who is speaking. It ends with ctx.
	Identify(ctx context.Context, pcm []int16) voices.Speaker
	// Certain reports whether a speaker is known with room to spare.
	Certain(s voices.Speaker) bool
}

// Options hold what the watch of a conversation needs. All must be set.
type Options struct {
	Report func(turn.Event)                                  // gets [turn.Identified]; may wait
	Child  func() (context.Context, context.CancelCauseFunc) // a context that ends with the conversation
	Go     func(func())                                      // starts a goroutine that the conversation joins
	Kept   func(id uint64, pcm []int16)                      // gets the sound of an utterance that was wanted; may wait
}

// Watch looks at the voices of a conversation.
//
// # Concurrency
//
// Its methods may be called at the same time.
type Watch struct {
	o     Options
	wants atomic.Bool
}

// New makes a watch.
func New(o Options) *Watch { return &Watch{o: o} }

// Want has the sound of utterances that begin from now on be kept and given to Options.Kept, at most [providers.MaxVoice] of each, or
// not any more.
func (w *Watch) Want(on bool) { w.wants.Store(on) }

// Tap begins to listen in on an utterance, for a book; nil: there is nobody to be known. ctx ends with what is done for the utterance: what is
// being found out about one that is over ([turn.ErrDone]) still is, for the next turn.
func (w *Watch) Tap(ctx context.Context, id uint64, b Book) listen.Tap {
	keeps, looks := w.wants.Load(), b.On()
	if !keeps && !looks {
		return nil
	}
	look, cancel := w.o.Child()
	t := &tap{w: w, book: b, id: id, keeps: keeps, looks: looks, cancel: cancel, next: make(chan []int16, 1)}
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, turn.ErrDone) {
			cancel(cause)
		}
	})
	w.o.Go(func() {
		defer cancel(turn.ErrDone)
		defer stop()
		t.run(look)
	})
	return t
}

// tap is one utterance that is listened in on. It is for the listener's goroutine, but run is a goroutine of its own.
type tap struct {
	w      *Watch
	book   Book
	id     uint64
	keeps  bool
	looks  bool
	cancel context.CancelCauseFunc // ends the looks

	said   []int16
	looked int          // so much of it was looked at, or is to be
	next   chan []int16 // size 1: the sound to look at, the newest

	reporting sync.Mutex
	silent    bool // nothing is reported any more
}

// Write takes a copy of sound.
func (t *tap) Write(pcm []int16) {
	most := mostHeard
	if t.keeps {
		most = mostKept
	}
	t.said = append(t.said, pcm[:min(len(pcm), max(0, most-len(t.said)))]...)
	if t.looked == 0 && len(t.said) >= firstLook {
		t.look()
	}
}

// Pause says that what was said so far may be all.
func (t *tap) Pause() {
	if t.heard()*5 >= t.looked*7 {
		t.look()
	}
}

// End says that the utterance is over. echo: it was the device's own sound, which says nothing of who speaks.
func (t *tap) End(echo bool) {
	switch {
	case echo:
		t.report(turn.Speaker{Voice: turn.Unclear}, true)
		t.cancel(turn.ErrReplaced)
	case t.looked == 0, t.heard()-t.looked >= max(t.looked*2/5, providers.VoiceRate):
		t.look()
	}
	if t.keeps && !echo {
		t.w.o.Kept(t.id, t.said)
	}
	close(t.next)
}

// Drop says that the utterance is forgotten.
func (t *tap) Drop(cause error) {
	t.cancel(cause)
	close(t.next)
}

func (t *tap) heard() int { return min(len(t.said), mostHeard) }

// look has the sound so far be looked at, in place of what waits for that.
func (t *tap) look() {
	if !t.looks || len(t.said) == 0 {
		return
	}
	t.looked = t.heard()
	select {
	case <-t.next:
	default:
	}
	t.next <- slices.Clip(t.said[:t.looked]) // it is only added to
}

// run looks at sound until there is no more.
func (t *tap) run(ctx context.Context) {
	for pcm := range t.next {
		if ctx.Err() != nil {
			continue // until it is closed
		}
		look, stop := context.WithTimeout(ctx, lookTime)
		who := t.book.Identify(look, pcm)
		stop()
		if ctx.Err() == nil && who.Verdict != voices.Unknown {
			t.report(t.speaker(who), false)
		}
	}
}

// report says who speaks; last: nothing that is found out later counts.
func (t *tap) report(s turn.Speaker, last bool) {
	t.reporting.Lock()
	defer t.reporting.Unlock()
	if t.silent || !t.looks {
		return
	}
	t.silent = last
	t.w.o.Report(turn.Identified{ID: t.id, Speaker: s})
}

func (t *tap) speaker(s voices.Speaker) turn.Speaker {
	switch s.Verdict {
	case voices.Known:
		return turn.Speaker{Voice: turn.Familiar, ID: s.ID, Name: s.Name, Sure: s.Sure, Certain: t.book.Certain(s)}
	case voices.Stranger:
		return turn.Speaker{Voice: turn.Stranger}
	case voices.Unclear:
		return turn.Speaker{Voice: turn.Unclear}
	case voices.Unknown:
	}
	return turn.Speaker{}
}
