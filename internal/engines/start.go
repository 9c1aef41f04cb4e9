package engines

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// Start holds the work to be done before engines are used for the first time.
type Start struct {
	Loads []func(context.Context) error // into memory, in order
	Dials []func(context.Context) error // connections to services, beside the loads
	log   *slog.Logger
}

func (s *Start) load(f func(context.Context) error) { s.Loads = append(s.Loads, f) }

func (s *Start) dial(f func(context.Context) error) { s.Dials = append(s.Dials, f) }

// Ready loads what was made while devices talk, and reaches services for the first time. Of services only the log
// tells that they are out of reach.
func (s *Start) Ready(ctx context.Context) error {
	var dials sync.WaitGroup
	defer dials.Wait()
	near, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	for _, f := range s.Dials {
		dials.Go(func() {
			if err := f(near); err != nil {
				s.log.Warn("service not reached", "err", err)
			}
		})
	}
	var failed error
	for _, f := range s.Loads {
		failed = errors.Join(failed, f(ctx))
	}
	dials.Wait() // before its time is over
	return failed
}
