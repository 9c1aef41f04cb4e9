package think

import (
	"context"
	"sync"
	"time"

	"xiaozhi/prompts"
)

// When a turn that waits for a tool says so (docs/behaviours.md 36): after so much
// silence, once each. The model is said to be slow once (docs/behaviours.md 40).
const (
	fillerFirst = 1200 * time.Millisecond
	fillerNext  = 6 * time.Second
	fillerAgain = 100 * time.Millisecond // until looking again while something is being said
	// slowGrace is how long an engine may take in any case, however long the user
	// has waited for the others.
	slowGrace = 400 * time.Millisecond
)

// waits says aloud that something takes a while, at most so often in a turn.
type waits struct {
	slowAfter time.Duration // until the model is said to be slow; less than 0: never
	out       Outlet
	voiced    func() bool                                // somebody is speaking
	say       func(ctx context.Context, id string) error // a phrase
	fillers   int                                        // said so far
	noticed   bool                                       // it was said that the model is slow
}

// await waits for done. It says that it takes a while when it does.
func (w *waits) await(ctx context.Context, done <-chan struct{}) error {
	began := time.Now()
	timer := time.NewTimer(w.fillerIn(fillerFirst, began))
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			again, err := w.filler(ctx, began)
			if err != nil {
				return err
			}
			timer.Reset(again)
		}
	}
}

// fillerIn returns how soon a filler is due that is due in left, of a wait since
// began: sooner where nothing was heard in the turn at all.
func (w *waits) fillerIn(left time.Duration, began time.Time) time.Duration {
	if w.slowAfter > 0 && w.fillers == 0 && w.out.Player.FirstFrame().IsZero() {
		return min(left, time.Until(w.slowAt(began)))
	}
	return left
}

// filler says a filler if there has been silence for long enough and nobody is
// speaking, and returns when to try again.
func (w *waits) filler(ctx context.Context, began time.Time) (time.Duration, error) {
	after, id := fillerFirst, prompts.Filler
	switch w.fillers {
	case 0:
	case 1:
		after, id = fillerNext, prompts.FillerLong
	default:
		return time.Hour, nil
	}
	quiet, ok := w.out.Speaker.QuietSince()
	if !ok || w.voiced() {
		return fillerAgain, nil
	}
	if quiet.Before(began) {
		quiet = began
	}
	if left := w.fillerIn(after-time.Since(quiet), began); left > 0 {
		return left, nil
	}
	w.fillers++
	return fillerAgain, w.say(ctx, id)
}

// noticeSlow says, once in a turn, that the model takes a while, if nothing has
// been heard for too long. The caller calls stop when there is something to be
// heard, or will not be.
func (w *waits) noticeSlow(ctx context.Context) (stop func()) {
	if w.slowAfter < 0 || w.noticed {
		return func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if w.out.Player.AwaitOpen(ctx) != nil {
			return
		}
		began := time.Now()
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		for left := w.slowIn(began); left > 0; left = w.slowIn(began) {
			timer.Reset(left)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		w.noticed = true
		_ = w.say(ctx, prompts.SlowLLM) // it fails where the turn ends
	})
	return sync.OnceFunc(func() {
		cancel(nil)
		wg.Wait()
	})
}

// slowIn returns how much longer a model that was asked then may give nothing.
func (w *waits) slowIn(began time.Time) time.Duration {
	quiet, ok := w.out.Speaker.QuietSince()
	switch {
	case !ok:
		return fillerAgain // something is being said
	case quiet.IsZero():
		return time.Until(w.slowAt(began))
	case quiet.Before(began):
		quiet = began
	}
	return time.Until(quiet.Add(w.slowAfter))
}

// slowAt returns when the user has heard nothing for too long in a turn in which
// nothing was heard yet, for an engine that has worked since then.
func (w *waits) slowAt(began time.Time) time.Time {
	silent := w.out.Times.SilentSince()
	if silent.IsZero() {
		return began.Add(w.slowAfter)
	}
	at := began.Add(min(slowGrace, w.slowAfter))
	if due := silent.Add(w.slowAfter); due.After(at) {
		return due
	}
	return at
}
