package app

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/internal/engines"
)

// lifecycle holds what is loaded once the server listens, and what ends with the
// program. It is filled by one goroutine before [lifecycle.warm].
type lifecycle struct {
	loads   []func(context.Context) error // what the first turn needs, in order
	extras  []func(context.Context) error // what makes the first turns faster, afterwards
	dials   []func(context.Context) error // connections to services, beside the loads
	closers []func()
	log     *slog.Logger
	ready   atomic.Bool // the chains' first engines are loaded
}

// engines adds what those need that were found.
func (l *lifecycle) engines(s *engines.Start) {
	l.loads, l.dials = append(l.loads, s.Loads...), append(l.dials, s.Dials...)
}

// early adds a step before all others. f must not wait.
func (l *lifecycle) early(f func() error) {
	l.loads = slices.Insert(l.loads, 0, func(context.Context) error { return f() })
}

// later adds a step that can wait until the program is ready.
func (l *lifecycle) later(f func(context.Context) error) { l.extras = append(l.extras, f) }

func (l *lifecycle) atEnd(f func()) { l.closers = append(l.closers, f) }

// warm loads what the first turns need and returns when all is done. A service that
// is out of reach delays nothing else.
func (l *lifecycle) warm(ctx context.Context) {
	var dials sync.WaitGroup
	defer dials.Wait()
	for _, f := range l.dials {
		dials.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn("service not reached", "err", err)
			}
		})
	}
	l.runAll(ctx, l.loads)
}

func (l *lifecycle) warmExtras(ctx context.Context) { l.runAll(ctx, l.extras) }

// runAll runs functions one after the other until ctx ends; failures are only logged.
func (l *lifecycle) runAll(ctx context.Context, all []func(context.Context) error) {
	for _, f := range all {
		if ctx.Err() != nil {
			return
		}
		if err := f(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("engine did not load", "err", err)
		}
	}
}

func (l *lifecycle) end() {
	for _, f := range slices.Backward(l.closers) {
		f()
	}
}

// tidyAfter is the time without a device after which memory is given back.
const tidyAfter = time.Second

// tidy runs free whenever devices have been connected and none has been for
// tidyAfter, until ctx ends.
func tidy(ctx context.Context, connected func() int, free func()) {
	tick := time.NewTicker(tidyAfter)
	defer tick.Stop()
	for used, quiet := false, false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch {
		case connected() > 0:
			used, quiet = true, false
		case used && quiet:
			used = false
			free()
		default:
			quiet = true
		}
	}
}
