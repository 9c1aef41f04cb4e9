package agent

import (
	"context"
	"sync"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/prompts"
)

// This file says aloud that a part is late (voice.md, behaviour 40): nobody sits
// in silence for longer than three seconds, and whatever comes late is still
// answered.

const (
	// slowAfter is how long nothing may be heard after the end of speech before it
	// is said that the recogniser, the model or the voice is slow.
	slowAfter = 2500 * time.Millisecond
	// slowGrace is how long each of them may take in any case, however much of that
	// time the others have used.
	slowGrace = 400 * time.Millisecond
)

// waitAloud says, once in a turn, that the model takes a while, if nothing has
// been heard for too long. The caller calls stop once, when there is something to
// be heard, or will not be.
func (t *reply) waitAloud(ctx context.Context) (stop func()) {
	if t.order.notice != nil || t.o.SlowAfter < 0 || t.excused {
		return func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if t.player.AwaitOpen(ctx) != nil {
			return
		}
		began := time.Now()
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		for left := t.slowLeft(began); left > 0; left = t.slowLeft(began) {
			if wait(ctx, timer, left) != nil {
				return
			}
		}
		t.excused = true
		_ = t.sayPhrase(ctx, max(0, len(t.steps)-1), prompts.SlowLLM) // it fails where the turn ends
	})
	return sync.OnceFunc(func() {
		cancel(turn.ErrDone)
		wg.Wait()
	})
}

// slowLeft is how much longer a model that was asked then may give nothing.
func (t *reply) slowLeft(began time.Time) time.Duration {
	quiet, ok := t.speaker.QuietSince()
	switch {
	case !ok:
		return fillerAgain // something is being said
	case quiet.IsZero():
		return time.Until(t.tooLong(began))
	case quiet.Before(began):
		quiet = began
	}
	return time.Until(quiet.Add(t.o.SlowAfter))
}

// tooLong is when the user has heard nothing for too long in a turn in which
// nothing was heard yet, for a part that has worked since then.
func (t *reply) tooLong(began time.Time) time.Time {
	at := began.Add(min(slowGrace, t.o.SlowAfter))
	if silent := t.times.SilentSince(); silent.IsZero() {
		return began.Add(t.o.SlowAfter)
	} else if due := silent.Add(t.o.SlowAfter); due.After(at) {
		return due
	}
	return at
}

// wait sleeps for d on the timer, or until ctx ends.
func wait(ctx context.Context, timer *time.Timer, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
