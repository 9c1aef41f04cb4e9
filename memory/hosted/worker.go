package hosted

import (
	"context"
	"errors"
	"time"

	"xiaozhi/memory"
	"xiaozhi/providers"
)

const (
	openTalks   = 64 // that are looked at at once
	pieceTurns  = 60 // of a talk that are given at once
	wholeTurns  = 600
	giveTime    = 2 * time.Minute
	firstRetry  = time.Minute
	latestRetry = time.Hour // between two attempts
	mostRefused = 5         // times that a service refuses a talk for good, until it is let go
)

// worker gives the service talks that are over, and has it delete what is to be forgotten. It is for one goroutine.
type worker struct {
	*Store
	failed  int            // attempts in a row
	refused map[string]int // by talk
}

// run works until the store is closed. What cannot be done is tried again after a minute, then twice as long, an hour at most.
func (w *worker) run() {
	w.refused = map[string]int{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.wake:
			if w.failed > 0 { // what is wrong is not mended by there being more to do
				continue
			}
		case <-timer.C:
		}
		if err := w.work(w.ctx); err != nil && w.ctx.Err() == nil {
			again := min(firstRetry<<min(w.failed, 8), latestRetry)
			w.failed++
			w.o.Log.Warn("a memory service could not be given what it is to know", "provider", w.o.Service.Name(), "attempt", w.failed, "again_in", again, "err", err)
			timer.Reset(again)
			continue
		}
		w.failed = 0
	}
}

// work does all that there is to do: what is to be forgotten of a device goes first, so that nothing newer is deleted with it.
func (w *worker) work(ctx context.Context) (err error) {
	open, err := w.look(ctx)
	if err != nil {
		return err
	}
	waits := map[string]bool{} // devices
	for _, e := range open {
		limited, cancel := context.WithTimeout(ctx, giveTime)
		failed := w.do(limited, e)
		cancel()
		if failed != nil {
			err, waits[e.Owner.Device] = failed, true
			continue
		}
		w.o.Changed(e.Owner)
	}
	for {
		talks, failed := w.Ungiven(ctx, openTalks)
		if failed != nil {
			return failed
		}
		n := len(talks)
		for _, t := range talks {
			if waits[t.Owner.Device] {
				n--
				continue
			}
			failed := w.talk(ctx, t)
			if failed == nil {
				continue
			}
			if err = failed; !refuses(failed) {
				return err // nor does it take others
			}
			waits[t.Owner.Device] = true
			n--
		}
		if n == 0 {
			return err
		}
	}
}

// look reads what the service has to delete.
func (w *worker) look(ctx context.Context) ([]Errand, error) {
	w.asking.Lock()
	defer w.asking.Unlock()
	open, err := w.open(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range open {
		w.errands[e] = true
	}
	return open, err
}

// refuses reports whether an error is about what the service was given, and not about the service.
func refuses(err error) bool {
	failed, ok := errors.AsType[*providers.Error](err)
	return ok && failed.Kind == providers.BadRequest
}

// talk gives the service the rest of a talk, a piece at a time, without what the user wanted forgotten later on.
func (w *worker) talk(ctx context.Context, t memory.Talk) (err error) {
	w.giving(t.Owner.Device, time.Now().Add(time.Hour)) // before it is read: what is forgotten from now on may be given
	settled := true
	defer func() {
		until := time.Time{}
		if !settled || err != nil {
			until = time.Now().Add(settling)
		}
		w.giving(t.Owner.Device, until)
	}()
	said, err := w.Said(ctx, t.ID, t.Learned, wholeTurns)
	if err != nil {
		return err
	}
	last := t.Turns
	if len(said) == wholeTurns {
		last = said[wholeTurns-1].Seq
	}
	for said = memory.Unforgotten(said); len(said) > 0 && said[0].Seq <= t.Turns; {
		n := 1
		for n < min(len(said), pieceTurns) && said[n].Agent == said[0].Agent && said[n].Seq <= t.Turns {
			n++
		}
		done, err := w.piece(ctx, t, said[:n])
		if settled = settled && done; err != nil {
			return err
		}
		if err := w.Given(ctx, t.ID, min(said[n-1].Seq, t.Turns)); err != nil {
			return err
		}
		said = said[n:]
	}
	return w.Given(ctx, t.ID, min(last, t.Turns))
}

// piece gives the service turns with one agent. settled: it has worked them off.
func (w *worker) piece(ctx context.Context, t memory.Talk, said []memory.Said) (settled bool, err error) {
	o := memory.Owner{Device: t.Owner.Device, Agent: said[0].Agent}
	if w.o.Mode(o) != memory.Whole {
		return true, nil
	}
	if err := w.Settle(ctx, w.o.Service.Name(), o); err != nil {
		return true, err
	}
	limited, cancel := context.WithTimeout(ctx, giveTime)
	defer cancel()
	settled, err = w.o.Service.Learn(limited, o, t.ID, said)
	if refuses(err) {
		if w.refused[t.ID]++; w.refused[t.ID] >= mostRefused {
			w.o.Log.Error("a memory service refuses a talk, which it will not know", "device_id", o.Device, "talk", t.ID, "provider", w.o.Service.Name(), "err", err)
			delete(w.refused, t.ID)
			return settled, nil
		}
	}
	if err != nil {
		return settled, err
	}
	delete(w.refused, t.ID)
	w.o.Log.Info("a talk was given to a memory service", "device_id", o.Device, "talk", t.ID, "turns", len(said), "provider", w.o.Service.Name())
	w.read(o)
	return settled, nil
}
