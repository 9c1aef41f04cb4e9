package store

import (
	"context"
	"time"
)

// ReminderState says how far a reminder is.
type ReminderState string

// The states of a reminder.
const (
	ReminderWaiting   ReminderState = "waiting"   // for its time
	ReminderRinging   ReminderState = "ringing"   // it is due, and was not heard yet
	ReminderDone      ReminderState = "done"      // it was told for the last time
	ReminderCancelled ReminderState = "cancelled" // somebody took it back
)

// Reminder is something that a device shall say at a time: a timer or a reminder, once or by a rule.
type Reminder struct {
	ID       string
	DeviceID string
	DueAt    time.Time     // next time
	Rule     string        // RFC 5545; "": once
	Start    string        // local wall time that the rule begins with
	Zone     string        // IANA name, in which Start and Rule count
	Text     string        // what to tell; "": nothing but the bell
	Language string        // of the person who asked
	Kind     string        // timer or reminder
	Length   time.Duration // that a timer was asked for
	State    ReminderState
	RangAt   time.Time // last time
	MadeAt   time.Time
	MadeTurn string // turn in which it was asked for
}

const reminderColumns = "id, device_id, due_at, rule, start, zone, text, language, kind, length_ms, state, rang_at, made_at, made_turn"

func (r *Reminder) fields() []any {
	return []any{
		text{&r.ID}, text{&r.DeviceID}, stamp{&r.DueAt}, maybe{&r.Rule}, maybe{&r.Start}, text{&r.Zone}, text{&r.Text}, maybe{&r.Language}, text{&r.Kind},
		span{&r.Length}, enum[ReminderState]{&r.State}, stamp{&r.RangAt}, stamp{&r.MadeAt}, maybe{&r.MadeTurn},
	}
}

const selectReminder = "SELECT " + reminderColumns + " FROM reminders"

// Reminders is the table of reminders.
type Reminders struct{ db *database }

// Add keeps a reminder.
func (t *Reminders) Add(ctx context.Context, r Reminder) error {
	r.MadeAt = orNow(r.MadeAt, t.db.clock)
	_, err := t.db.exec(ctx, insert("reminders", reminderColumns), r.fields()...)
	return err
}

// Get returns the reminder of an id.
func (t *Reminders) Get(ctx context.Context, id string) (Reminder, error) {
	return first[Reminder](ctx, t.db.read, selectReminder+" WHERE id = $1", id)
}

// Open lists what a device still has to tell, the next first.
func (t *Reminders) Open(ctx context.Context, deviceID string) ([]Reminder, error) {
	return list[Reminder](ctx, t.db.read, selectReminder+" WHERE device_id = $1 AND state IN ('waiting', 'ringing') ORDER BY due_at, id", deviceID)
}

// Due lists what is due at a time on any device, what has waited longest first, at most limit of them.
func (t *Reminders) Due(ctx context.Context, at time.Time, limit int) ([]Reminder, error) {
	return list[Reminder](ctx, t.db.read, selectReminder+" WHERE state IN ('waiting', 'ringing') AND due_at <= $1 ORDER BY due_at, id LIMIT $2", at.UnixMilli(), limit)
}

// Next returns the reminder that waits and is due first, on any device.
func (t *Reminders) Next(ctx context.Context) (Reminder, error) {
	return first[Reminder](ctx, t.db.read, selectReminder+" WHERE state = 'waiting' ORDER BY due_at, id LIMIT 1")
}

// Replace writes a reminder if it still is as old says, in its state and the time at which it is due; else
// [ErrConflict]: somebody was first. So nothing rings twice.
func (t *Reminders) Replace(ctx context.Context, old, r Reminder) error {
	r.ID, r.DeviceID = old.ID, old.DeviceID
	n, err := t.db.exec(ctx, "UPDATE reminders SET "+assign(reminderColumns)+" WHERE id = $15 AND state = $16 AND due_at = $17",
		append(r.fields(), old.ID, string(old.State), old.DueAt.UnixMilli())...)
	if err == nil && n == 0 {
		err = ErrConflict
	}
	return err
}

// Trim deletes what was told or cancelled and was due before a time.
func (t *Reminders) Trim(ctx context.Context, before time.Time) (int64, error) {
	return t.db.exec(ctx, "DELETE FROM reminders WHERE state IN ('done', 'cancelled') AND due_at < $1", before.UnixMilli())
}
