package agent

import (
	"context"
	"time"

	"xiaozhi/prompts"
)

// When a turn that waits for a tool says so (voice.md, behaviour 36): after so
// much silence, once each.
const (
	fillerFirst = 1200 * time.Millisecond
	fillerNext  = 6 * time.Second
	fillerAgain = 100 * time.Millisecond // how soon to look again while something is being said
)

// await waits for done. It says that it takes a while when it does.
func (t *reply) await(ctx context.Context, done <-chan struct{}) error {
	began := time.Now()
	timer := time.NewTimer(t.fillerIn(fillerFirst, began))
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			again, err := t.hum(ctx, began)
			if err != nil {
				return err
			}
			timer.Reset(again)
		}
	}
}

// fillerIn is how soon a filler is due that is due in left, of somebody who has
// waited since began: sooner where nothing was heard in the turn at all.
func (t *reply) fillerIn(left time.Duration, began time.Time) time.Duration {
	if t.o.SlowAfter > 0 && t.hums == 0 && t.player.FirstFrame().IsZero() {
		return min(left, time.Until(t.tooLong(began)))
	}
	return left
}

// hum says a filler if there has been silence for long enough and nobody is
// speaking, and returns when to try again.
func (t *reply) hum(ctx context.Context, began time.Time) (time.Duration, error) {
	after, id := fillerFirst, prompts.Filler
	switch t.hums {
	case 0:
	case 1:
		after, id = fillerNext, prompts.FillerLong
	default:
		return time.Hour, nil
	}
	quiet, ok := t.speaker.QuietSince()
	if !ok || t.voiced.Load() {
		return fillerAgain, nil
	}
	if quiet.Before(began) {
		quiet = began
	}
	if left := t.fillerIn(after-time.Since(quiet), began); left > 0 {
		return left, nil
	}
	t.hums++
	return fillerAgain, t.sayPhrase(ctx, max(0, len(t.steps)-1), id)
}
