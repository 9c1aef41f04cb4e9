package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/pairing"
	"xiaozhi/console/devices"
	"xiaozhi/console/tools"
	"xiaozhi/internal/config"
	"xiaozhi/internal/keeper"
	"xiaozhi/internal/services"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
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

// Kept returns for how many days what a device says is kept.
func (a bookOf) Kept(ctx context.Context, id string) (devices.Kept, error) {
	of := a.base()
	kept := devices.Kept{UsualText: of.Store.KeepDays, UsualSound: of.Recording.Days}
	d, err := a.stored.Devices.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) { // it is not written yet
		return kept, nil
	}
	kept.Text, kept.Sound = d.KeepText, d.KeepSound
	return kept, err
}

// Keep sets for how many days what a device says is kept; nil: as the settings say.
func (a bookOf) Keep(ctx context.Context, id string, text, sound *int) error {
	return pairing.Keep(ctx, pairing.Options{Book: a.book, Keeping: keepingIn(a.stored)}, id, pairing.Days{pairing.Text: text, pairing.Sound: sound})
}

// lastDay returns what counts the turns of a device by the hours of the last day, which begin as the clocks of the server's zone say.
func lastDay(a *App) func(ctx context.Context, id string) ([]devices.Hour, error) {
	return func(ctx context.Context, id string) ([]devices.Hour, error) {
		now := time.Now().In(a.forces.zone.Location())
		from := now.Add(-time.Duration(now.Minute())*time.Minute - time.Duration(now.Second())*time.Second - time.Duration(now.Nanosecond()) - 23*time.Hour)
		all := make([]devices.Hour, 24)
		for i := range all {
			all[i].At = from.Add(time.Duration(i) * time.Hour)
		}
		rows, err := a.stored.Turns.Hours(ctx, store.CostQuery{DeviceID: id, From: from, To: from.Add(24 * time.Hour)})
		for _, row := range rows {
			all[row.Hour].Turns, all[row.Hour].Failed = row.Turns, row.Failed
		}
		return all, err
	}
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

// keeper makes the keeper of a session with the sources of its device's tools; nil without a store and for devices that are
// not known: they have no history.
func (a *App) keeper(s wire.Session, sources ...mcp.Source) *keeper.Keeper {
	if a.stored == nil || s.Unknown || s.Private {
		return nil
	}
	return keeper.New(keeper.Options{
		Store: a.stored, Sound: a.recorders.turns, Device: s.DeviceID, Valid: a.forgetting.since(s.DeviceID), Sources: sources, Known: a.outside.known, Caller: callerOf,
		Price: func(name string) (config.Price, bool) { return services.PriceOf(a.base(), name) },
	})
}

// callerOf names who has made a call from outside.
func callerOf(callID string) string {
	if strings.HasPrefix(callID, tools.CallPrefix) {
		return "console"
	}
	return "outside"
}

// keeping returns what keeps the newest state of a known device under a name; nil: nothing does.
func (a *App) keeping(s wire.Session, name string) func(doc string) {
	if a.stored == nil || s.Unknown {
		return nil
	}
	valid := a.forgetting.since(s.DeviceID)
	return func(doc string) {
		valid(func() { a.stored.Log.Learned(s.DeviceID, name, doc) })
	}
}

// askedOf returns what keeps that a device has asked where to connect, and the language that it named.
func askedOf(s *store.Store) func(deviceID, language string) {
	if s == nil {
		return nil
	}
	return func(deviceID, language string) {
		s.Log.Seen(deviceID, store.Seen{AskedAt: time.Now(), Language: language})
	}
}

// languages gives the registry the languages that devices have named: they tell them when they are switched on only.
func languages(ctx context.Context, s *store.Store, devices *connection.Registry) error {
	if s == nil {
		return nil
	}
	return eachDevice(ctx, s, func(d *store.Device) { devices.SetLanguage(d.ID, d.Language) })
}
