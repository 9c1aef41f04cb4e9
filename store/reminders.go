package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Reminder is something that a device shall say at a time: a timer or an alert, once or by a rule.
type Reminder struct {
	ID       string
	DeviceID string
	Kind     string // timer or alert
	State    string // armed, snoozed, ringing, missed, told or deleted
	Text     string // what to tell; "": nothing but the bell
	Language string // in which it is told
	DueAt    time.Time
	Length   time.Duration // that a timer was asked for
	Wall     string        // local time of an alert
	Zone     string        // IANA name, in which Wall and Rule count
	Rule     string        // RFC 5545; "": once
	RangAt   time.Time
	MadeAt   time.Time // kept from when it was added
}

const (
	reminderColumns = "id, device_id, kind, state, text, language, due_at, length_ms, wall, zone, rule, rang_at, made_at"
	selectReminder  = "SELECT " + reminderColumns + " FROM reminders"
)

func (r *Reminder) fields() []any {
	return []any{
		text{&r.ID}, text{&r.DeviceID}, text{&r.Kind}, text{&r.State}, text{&r.Text}, maybe{&r.Language}, stamp{&r.DueAt}, span{&r.Length},
		maybe{&r.Wall}, maybe{&r.Zone}, maybe{&r.Rule}, stamp{&r.RangAt}, stamp{&r.MadeAt},
	}
}

// Reminders is the table of reminders.
type Reminders struct{ db *database }

// Add keeps a reminder of a device that is known: [ErrNotFound] if it is not.
func (t *Reminders) Add(ctx context.Context, r Reminder) error {
	r.MadeAt = orNow(r.MadeAt, t.db.clock)
	_, err := t.db.exec(ctx, insert("reminders", reminderColumns), r.fields()...)
	return err
}

// ReminderQuery says which reminders are meant.
type ReminderQuery struct {
	DeviceID string    // "": of all devices
	States   []string  // nil: in any state
	Before   time.Time // due at or before it; zero: whenever
	Limit    int       // 0: all
}

// Find returns what a query asks for, the earliest due first.
func (t *Reminders) Find(ctx context.Context, q ReminderQuery) ([]Reminder, error) {
	var args []any
	mark := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := []string{"1 = 1"}
	if q.States != nil {
		var marks []string
		for _, s := range q.States {
			marks = append(marks, mark(s))
		}
		where = append(where, "state IN ("+strings.Join(marks, ", ")+")")
	}
	if q.DeviceID != "" {
		where = append(where, "device_id = "+mark(q.DeviceID))
	}
	if !q.Before.IsZero() {
		where = append(where, "due_at <= "+mark(q.Before.UnixMilli()))
	}
	query := selectReminder + " WHERE " + strings.Join(where, " AND ") + " ORDER BY due_at, id"
	if q.Limit > 0 {
		query += " LIMIT " + mark(q.Limit)
	}
	return list[Reminder](ctx, t.db.read, query, args...)
}

const changeReminder = "kind, state, text, language, due_at, length_ms, wall, zone, rule, rang_at"

// Change writes a reminder in place of was, if that still has its state and its time; else [ErrConflict]: somebody
// was first. So nothing rings twice.
func (t *Reminders) Change(ctx context.Context, was, now Reminder) error {
	done, err := t.ChangeAll(ctx, []ReminderChange{{was, now}})
	if err == nil && !done[0] {
		err = ErrConflict
	}
	return err
}

// ReminderChange puts a reminder in place of what it was.
type ReminderChange struct{ Was, Now Reminder }

// ChangeAll makes in one transaction those changes whose reminders still have their state and their time, and tells
// which they are.
func (t *Reminders) ChangeAll(ctx context.Context, all []ReminderChange) (done []bool, err error) {
	query := "UPDATE reminders SET " + assign(changeReminder) + " WHERE id = $11 AND state = $12 AND due_at = $13"
	done = make([]bool, len(all))
	return done, t.db.change(ctx, func(tx *sql.Tx) error {
		for i, c := range all {
			fields := c.Now.fields()
			n, err := execIn(ctx, tx, query, append(fields[2:len(fields)-1], c.Was.ID, c.Was.State, c.Was.DueAt.UnixMilli())...)
			if err != nil {
				return err
			}
			done[i] = n > 0
		}
		return nil
	})
}

// Shift moves all timers that wait: clocks were set by d.
func (t *Reminders) Shift(ctx context.Context, d time.Duration) error {
	_, err := t.db.exec(ctx, "UPDATE reminders SET due_at = due_at + $1 WHERE kind = 'timer' AND state IN ('armed', 'snoozed')", d.Milliseconds())
	return err
}

// Purge deletes those that were told or deleted, and were due and rang before a time.
func (t *Reminders) Purge(ctx context.Context, before time.Time) error {
	_, err := t.db.exec(ctx, "DELETE FROM reminders WHERE state IN ('told', 'deleted') AND due_at < $1 AND COALESCE(rang_at, 0) < $2",
		before.UnixMilli(), before.UnixMilli())
	return err
}

// Forget deletes all reminders of a device.
func (t *Reminders) Forget(ctx context.Context, deviceID string) error {
	_, err := t.db.exec(ctx, "DELETE FROM reminders WHERE device_id = $1", deviceID)
	return err
}

// Routine is something that is done at times, or when something happens.
type Routine struct {
	ID       string
	Source   string // file, voice or api
	DeviceID string // with which it goes; "": with none
	Body     string // JSON
	State    string // JSON
	Hash     string // of the token of its hook
	ByID     string // of the account of who has made it; "": of nobody
	ByName   string
	At       time.Time
}

const routineColumns = "id, source, device_id, body, state, token_hash, by_id, by_name, at"

func (r *Routine) fields() []any {
	return []any{
		text{&r.ID}, text{&r.Source}, maybe{&r.DeviceID}, text{&r.Body}, text{&r.State}, maybe{&r.Hash}, maybe{&r.ByID}, maybe{&r.ByName}, stamp{&r.At},
	}
}

// Routines is the table of routines.
type Routines struct{ db *database }

// Put keeps a routine in place of the one of its id. The error is [ErrNotFound] if its device is not known.
func (t *Routines) Put(ctx context.Context, r Routine) error {
	r.At = orNow(r.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("routines", routineColumns)+" ON CONFLICT (id) DO UPDATE SET "+replace(routineColumns), r.fields()...)
	return err
}

// List returns all routines.
func (t *Routines) List(ctx context.Context) ([]Routine, error) {
	return list[Routine](ctx, t.db.read, "SELECT "+routineColumns+" FROM routines ORDER BY id")
}

// Delete forgets a routine; it is no error if there is none.
func (t *Routines) Delete(ctx context.Context, id string) error {
	_, err := t.db.exec(ctx, "DELETE FROM routines WHERE id = $1", id)
	return err
}
