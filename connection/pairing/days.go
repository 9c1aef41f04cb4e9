package pairing

import (
	"context"
	"errors"

	"xiaozhi/connection/identity"
)

// Days say for how many days what a device has said is kept, by what it is: [Text] or [Sound]. nil: as the settings say,
// 0: for ever.
type Days map[string]*int

// What is kept for days.
const (
	Text  = "text"  // talks, and calls from outside
	Sound = "sound" // recordings
)

// MaxDays is for how many days something can be kept at most, if not for ever.
const MaxDays = 36500

// Keeping keeps for how many days what devices have said is kept.
type Keeping interface {
	// Set changes the days that are named: [identity.ErrNoSuchDevice] if the device is not known.
	Set(ctx context.Context, id string, days Days) error
	// All returns the days that devices have of their own, by their ids.
	All(ctx context.Context) (map[string]Days, error)
}

var (
	errDays   = errors.New("days are from 0 to 36500, of text or sound")
	errNoKept = errors.New("nothing is kept")
)

// check reports days that nobody can mean.
func (d Days) check() error {
	if len(d) == 0 {
		return errDays
	}
	for of, n := range d {
		if of != Text && of != Sound || n != nil && (*n < 0 || *n > MaxDays) {
			return errDays
		}
	}
	return nil
}

// Keep sets the days of a device that the book knows, once its row is there. Of the options it uses Book and Keeping.
func Keep(ctx context.Context, o Options, id string, days Days) error {
	if o.Keeping == nil {
		return errNoKept
	}
	if err := days.check(); err != nil {
		return err
	}
	if err := o.Book.Flush(ctx); err != nil {
		return errors.Join(identity.ErrNotWritten, err)
	}
	return o.Keeping.Set(ctx, id, days)
}

// days lists the days that devices have of their own.
func (h *handler) days(ctx context.Context) map[string]Days {
	if h.o.Keeping == nil {
		return nil
	}
	all, err := h.o.Keeping.All(ctx)
	if err != nil {
		h.o.Log.Warn("for how many days devices are kept is not known", "err", err)
	}
	return all
}
