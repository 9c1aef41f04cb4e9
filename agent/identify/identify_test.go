package identify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/providers"
	"xiaozhi/voices"
)

// slowBook takes its time, and says that it was Anna.
type slowBook struct {
	takes time.Duration
	off   bool

	mu    sync.Mutex
	looks []int // how many samples each has got
	ended []error
	at    int // at the same time, the most
	now   int
}

func (b *slowBook) On() bool                    { return !b.off }
func (b *slowBook) Certain(voices.Speaker) bool { return true }
func (b *slowBook) Identify(ctx context.Context, pcm []int16) voices.Speaker {
	b.mu.Lock()
	b.looks = append(b.looks, len(pcm))
	b.now++
	b.at = max(b.at, b.now)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.now--
		b.mu.Unlock()
	}()
	select {
	case <-time.After(b.takes):
		return voices.Speaker{Verdict: voices.Known, ID: "a", Name: "Anna", Sure: 80}
	case <-ctx.Done():
		b.mu.Lock()
		b.ended = append(b.ended, context.Cause(ctx))
		b.mu.Unlock()
		return voices.Speaker{}
	}
}

// watching holds a watch in a conversation, and what it has reported.
type watching struct {
	*Watch
	book *slowBook
	end  context.CancelCauseFunc
	wg   sync.WaitGroup

	mu   sync.Mutex
	said []turn.Speaker
	kept map[uint64]int
}

func watch(t *testing.T, book *slowBook) *watching {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &watching{book: book, end: cancel, kept: map[uint64]int{}}
	w.Watch = New(Options{
		Report: func(e turn.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.said = append(w.said, e.(turn.Identified).Speaker)
		},
		Child: func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(ctx) },
		Go:    func(f func()) { w.wg.Go(f) },
		Kept:  func(id uint64, pcm []int16) { w.kept[id] = len(pcm) },
	})
	return w
}

func sound(d time.Duration) []int16 { return make([]int16, int(d*providers.VoiceRate/time.Second)) }

// What was found out last counts; a look that takes long skips what came meanwhile, and there is one at a time.
func TestLooksAtTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &slowBook{takes: time.Second})
		tap := w.Tap(t.Context(), 1, w.book)
		for range 20 { // 6 s
			tap.Write(sound(300 * time.Millisecond))
			tap.Pause()
			synctest.Wait()
		}
		tap.End(false)
		w.wg.Wait()
		if n := len(w.book.looks); n != 2 || w.book.looks[0] > 24000 || w.book.looks[1] < 5*16000 || w.book.at != 1 {
			t.Errorf("looks %v, %d at a time", w.book.looks, w.book.at)
		}
		if len(w.said) != 2 || w.said[1] != (turn.Speaker{Voice: turn.Familiar, ID: "a", Name: "Anna", Sure: 80, Certain: true}) {
			t.Errorf("said %+v", w.said)
		}
	})
}

// Somebody who speaks without a pause is known before the end, and one who says little at the end.
func TestLooksWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for length, looks := range map[time.Duration]int{0: 0, 900 * time.Millisecond: 1, 1600 * time.Millisecond: 1, 4 * time.Second: 2, 20 * time.Second: 2} {
			w := watch(t, &slowBook{})
			tap := w.Tap(t.Context(), 1, w.book)
			for range int(length / (100 * time.Millisecond)) {
				tap.Write(sound(100 * time.Millisecond))
				synctest.Wait()
			}
			tap.End(false)
			w.wg.Wait()
			if n := len(w.book.looks); n != looks || n > 0 && w.book.looks[n-1] > mostHeard {
				t.Errorf("%v: looks %v", length, w.book.looks)
			}
		}
	})
}

// The device's own voice is nobody's, whatever was found out of it before.
func TestOwnVoiceIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, takes := range []time.Duration{0, time.Minute} {
			w := watch(t, &slowBook{takes: takes})
			tap := w.Tap(t.Context(), 1, w.book)
			tap.Write(sound(2 * time.Second))
			synctest.Wait()
			tap.End(true)
			w.wg.Wait()
			if n := len(w.said); n == 0 || w.said[n-1].Voice != turn.Unclear || w.said[n-1].ID != "" {
				t.Errorf("%v: said %+v", takes, w.said)
			}
		}
	})
}

// What is being found out ends with an utterance that is given up, and goes on for one that was answered.
func TestEndsWithItsUtterance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			end  func(w *watching, tap interface{ Drop(error) }, cancel context.CancelCauseFunc)
			said int
		}{
			"dropped": {func(_ *watching, tap interface{ Drop(error) }, _ context.CancelCauseFunc) { tap.Drop(turn.ErrReplaced) }, 0},
			"given up": {func(_ *watching, _ interface{ Drop(error) }, cancel context.CancelCauseFunc) {
				cancel(turn.ErrReplaced)
			}, 0},
			"answered": {func(_ *watching, _ interface{ Drop(error) }, cancel context.CancelCauseFunc) { cancel(turn.ErrDone) }, 1},
			"hung up":  {func(w *watching, _ interface{ Drop(error) }, _ context.CancelCauseFunc) { w.end(errors.New("gone")) }, 0},
		} {
			w := watch(t, &slowBook{takes: 3 * time.Second})
			ctx, cancel := context.WithCancelCause(t.Context())
			tap := w.Tap(ctx, 1, w.book)
			tap.Write(sound(2 * time.Second))
			synctest.Wait()
			began := time.Now()
			if c.end(w, tap, cancel); name != "dropped" {
				tap.End(false)
			}
			w.wg.Wait()
			if took := time.Since(began); len(w.said) != c.said || c.said == 0 && took > 0 {
				t.Errorf("%s: said %+v after %v", name, w.said, took)
			}
			cancel(nil)
		}
	})
}

// A service that hangs is given up.
func TestLookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &slowBook{takes: time.Hour})
		tap := w.Tap(t.Context(), 1, w.book)
		tap.Write(sound(2 * time.Second))
		tap.End(false)
		began := time.Now()
		w.wg.Wait()
		if took := time.Since(began); took != lookTime || len(w.said) > 0 {
			t.Errorf("%v %+v", took, w.said)
		}
	})
}

// The sound is kept only while it is wanted, and no more than a voiceprint takes.
func TestKeepsWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &slowBook{off: true})
		if tap := w.Tap(t.Context(), 1, w.book); tap != nil {
			t.Error("it listens in, and nobody can be known")
		}
		w.Want(true)
		tap := w.Tap(t.Context(), 2, w.book)
		w.Want(false)
		for range 40 {
			tap.Write(sound(time.Second))
		}
		tap.End(false)
		w.wg.Wait()
		if w.kept[2] != mostKept || len(w.book.looks) != 0 || len(w.said) != 0 {
			t.Errorf("kept %d, looks %v, said %v", w.kept[2], w.book.looks, w.said)
		}
	})
}
