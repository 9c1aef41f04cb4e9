// Package alarms keeps reminders in the store.
package alarms

import (
	"context"
	"errors"
	"time"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/internal/text"
	"xiaozhi/store"
)

// Reminders keeps reminders in a table of the store. Its methods may be called at the same time.
type Reminders struct{ table *store.Reminders }

var _ alarm.Store = Reminders{}

// New returns what keeps reminders in a table.
func New(table *store.Reminders) Reminders { return Reminders{table} }

// A device that has just come may not be written down yet: its first reminder waits for that.
const (
	deviceComes = 3 * time.Second
	lookForIt   = 50 * time.Millisecond
)

// Add commits a reminder. It waits for the record of its device for 3 s.
func (s Reminders) Add(ctx context.Context, r alarm.Reminder) error {
	return OnceKnown(ctx, func() error { return s.table.Add(ctx, toRow(r)) })
}

// OnceKnown has something of a device be kept. It waits for the record of the device for 3 s.
func OnceKnown(ctx context.Context, keep func() error) error {
	for until := time.Now().Add(deviceComes); ; {
		err := keep()
		if !errors.Is(err, store.ErrNotFound) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(lookForIt):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Find returns what a query asks for.
func (s Reminders) Find(ctx context.Context, q alarm.Query) ([]alarm.Reminder, error) {
	var states []string
	for _, state := range q.States {
		states = append(states, string(state))
	}
	rows, err := s.table.Find(ctx, store.ReminderQuery{DeviceID: q.Device, States: states, Before: q.Before, Limit: q.Most})
	if err != nil {
		return nil, err
	}
	found := make([]alarm.Reminder, len(rows))
	for i, r := range rows {
		found[i] = alarm.Reminder{
			ID: r.ID, Device: r.DeviceID, Kind: alarm.Kind(r.Kind), State: alarm.State(r.State), Text: r.Text, Lang: text.Lang(r.Language),
			Due: r.DueAt, Length: r.Length, Wall: r.Wall, Zone: r.Zone, Rule: r.Rule, Rang: r.RangAt,
		}
	}
	return found, nil
}

// Change commits all changes at once, but for those whose reminder is not as it was.
func (s Reminders) Change(ctx context.Context, all ...alarm.Change) (done []bool, err error) {
	changes := make([]store.ReminderChange, len(all))
	for i, c := range all {
		changes[i] = store.ReminderChange{Was: toRow(c.Was), Now: toRow(c.Now)}
	}
	return s.table.ChangeAll(ctx, changes)
}

// Shift commits another time for all timers that wait.
func (s Reminders) Shift(ctx context.Context, d time.Duration) error {
	return s.table.Shift(ctx, d)
}

// Purge forgets those that are over.
func (s Reminders) Purge(ctx context.Context, before time.Time) error {
	return s.table.Purge(ctx, before)
}

// Forget deletes all reminders of a device.
func (s Reminders) Forget(ctx context.Context, device string) error {
	return s.table.Forget(ctx, device)
}

func toRow(r alarm.Reminder) store.Reminder {
	return store.Reminder{
		ID: r.ID, DeviceID: r.Device, Kind: string(r.Kind), State: string(r.State), Text: r.Text, Language: string(r.Lang),
		DueAt: r.Due, Length: r.Length, Wall: r.Wall, Zone: r.Zone, Rule: r.Rule, RangAt: r.Rang,
	}
}
