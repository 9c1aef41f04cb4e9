package routine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"xiaozhi/internal/text"
)

const (
	maxBusy  = 16                // runs at the same time; what comes beyond that waits for its time, or is dropped if an event begins it
	runLimit = 150 * time.Second // for one run
	maxWhy   = 300               // bytes
)

// due begins what is due, and returns how long to wait for the next.
func (b *Book) due(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := lookEach
	if b.folder.dir != "" {
		wait = lookFiles
	}
	for _, e := range b.all {
		switch {
		case e.Due.IsZero() || e.Disabled || b.closed:
		case e.Due.After(now):
			wait = min(wait, e.Due.Sub(now))
		case e.running:
		case b.busy >= maxBusy:
			wait = min(wait, time.Second)
		default:
			b.begin(e, now)
			if !e.Due.IsZero() {
				wait = min(wait, max(e.Due.Sub(now), 0))
			}
		}
	}
	return wait
}

// begin begins a routine whose time has come. Of several that have passed the last counts, unless that is too long ago. b.mu is
// held.
func (b *Book) begin(e *entry, now time.Time) {
	last, at, n := e.Times.Latest(e.Due, now)
	next, due, again := last.Next(now)
	if e.Times, e.Due = next, due; !again {
		e.Due = time.Time{}
	}
	if now.Sub(at) > e.late() {
		e.Missed, e.Outcome, e.Why = e.Missed+n, Missed, ""
		r := e.Routine
		b.o.Log.Warn("a routine was missed", "routine", r.ID, "due", at, "times", n)
		b.run(func(ctx context.Context) { b.keep(ctx, r) })
		return
	}
	e.Missed += n - 1
	e.running = true
	r := e.Routine
	run := Run{Key: fmt.Sprintf("%s%s/0/%d", keyPrefix, r.ID, at.Unix()), Ends: at.Add(r.late())}
	b.run(func(ctx context.Context) { b.carry(ctx, r, run, true) })
}

// run does a piece of work beside everything else. b.mu is held.
func (b *Book) run(work func(ctx context.Context)) {
	if b.closed {
		return
	}
	b.busy++
	b.work.Go(func() {
		ctx, stop := b.life(runLimit)
		defer stop()
		defer func() {
			b.mu.Lock()
			b.busy--
			b.mu.Unlock()
		}()
		work(ctx)
	})
}

// carry does a routine once. timed: its time has come, so its next one is to be kept.
func (b *Book) carry(ctx context.Context, r Routine, run Run, timed bool) {
	began := time.Now()
	err := errNotKept
	if !timed || r.Tool == nil || b.keep(ctx, r) {
		err = b.do(ctx, r, run)
	}
	b.o.Log.Info("routine", "routine", r.ID, "key", run.Key, "took", time.Since(began), "err", err)
	b.mu.Lock()
	e := b.all[r.ID]
	if e == nil {
		b.mu.Unlock()
		return
	}
	if timed {
		e.running = false
	}
	e.Ran, e.Runs, e.Outcome, e.Why = began.Truncate(time.Millisecond), e.Runs+1, Done, ""
	if err != nil {
		e.Outcome, e.Why = Failed, text.Cut(err.Error(), maxWhy)
	}
	r = e.Routine
	b.mu.Unlock()
	if timed && r.Due.IsZero() && r.On == nil && r.Source != ByFile { // it had one time
		b.end(ctx, r.ID)
	} else {
		b.keep(ctx, r)
	}
	b.rouse()
}

var (
	errNotKept = errors.New("it could not be kept that it begins")
	errCrash   = errors.New("it crashed")
)

// do has the [Doer] do it.
func (b *Book) do(ctx context.Context, r Routine, run Run) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b.o.Log.Error("a routine crashed", "routine", r.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errCrash
		}
	}()
	return b.o.Doer.Do(ctx, r, run)
}

// keep keeps the state of a routine, unless it has ended, or is another one meanwhile.
func (b *Book) keep(ctx context.Context, r Routine) bool {
	b.change.Lock()
	defer b.change.Unlock()
	b.mu.Lock()
	e := b.all[r.ID]
	if e != nil {
		r = e.Routine
	}
	b.mu.Unlock()
	return e != nil && b.put(ctx, r)
}

// end forgets a routine that has had its only time.
func (b *Book) end(ctx context.Context, id string) {
	b.change.Lock()
	defer b.change.Unlock()
	if err := b.drop(ctx, id); err != nil {
		b.o.Log.Error("a routine that is over is not forgotten", "routine", id, "err", err)
	}
}

// Begin does a routine now, whatever it waits for. The error is [ErrNone] or [ErrOften].
func (b *Book) Begin(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.all[id]
	if e == nil {
		return ErrNone
	}
	if !b.trigger(e, Event{}, 0, time.Now()) {
		return ErrOften
	}
	return nil
}
