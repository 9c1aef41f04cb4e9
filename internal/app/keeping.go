package app

import (
	"context"
	"errors"
	"fmt"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/store"
)

// keeping keeps in the store for how many days what devices have said is kept.
type keeping struct{ store *store.Store }

// keepingIn keeps in a store for how many days what devices have said is kept; nil without one.
func keepingIn(s *store.Store) pairing.Keeping {
	if s == nil {
		return nil
	}
	return keeping{s}
}

// Set implements [pairing.Keeping].
func (k keeping) Set(ctx context.Context, id string, days pairing.Days) error {
	_, err := k.store.Devices.Edit(ctx, id, func(d *store.Device) error {
		if n, named := days[pairing.Text]; named {
			d.KeepText = n
		}
		if n, named := days[pairing.Sound]; named {
			d.KeepSound = n
		}
		return nil
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return identity.ErrNoSuchDevice
	case err != nil:
		return fmt.Errorf("%w: %w", identity.ErrNotWritten, err)
	}
	return nil
}

// All implements [pairing.Keeping].
func (k keeping) All(ctx context.Context) (map[string]pairing.Days, error) {
	all := map[string]pairing.Days{}
	return all, eachDevice(ctx, k.store, func(d *store.Device) {
		days := pairing.Days{}
		if d.KeepText != nil {
			days[pairing.Text] = d.KeepText
		}
		if d.KeepSound != nil {
			days[pairing.Sound] = d.KeepSound
		}
		if len(days) > 0 {
			all[d.ID] = days
		}
	})
}
