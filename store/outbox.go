package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Parcel is something that a device shall say, ask or play when it can be reached.
type Parcel struct {
	ID          string
	DeviceID    string
	Batch       string // that it was sent with; its own id if it was sent alone
	Kind        string // say, ask or play
	Body        string // JSON
	Source      string // who sends it
	Key         string // of a device there is one with that key; "": it has none
	Rank        int    // the higher, the sooner
	AtOnce      bool   // a device that is there does not wait for a pause
	DueAt       time.Time
	NotBefore   time.Time // it is tried again then; zero: at once
	EndsAt      time.Time // zero: it waits for ever
	State       string    // held, waiting, given, telling, heard, answered, expired or cancelled
	Reason      string    // of cancelled
	Tries       int
	DeliveredAt time.Time
	HeardChars  int
	Answer      string
	ByID        string
	At          time.Time
}

const (
	parcelColumns = "id, device_id, batch, kind, body, source, dedupe, rank, at_once, due_at, not_before, ends_at, state, reason, tries, " +
		"delivered_at, heard_chars, answer, by_id, at"
	selectParcel = "SELECT " + parcelColumns + " FROM outbox"
	// openParcel are the states of what is not over.
	openParcel = "state IN ('held', 'waiting', 'given', 'telling')"
)

func (p *Parcel) fields() []any {
	return []any{
		text{&p.ID}, text{&p.DeviceID}, text{&p.Batch}, text{&p.Kind}, text{&p.Body}, text{&p.Source}, maybe{&p.Key}, whole{&p.Rank}, flag{&p.AtOnce},
		stamp{&p.DueAt}, stamp{&p.NotBefore}, stamp{&p.EndsAt}, text{&p.State}, maybe{&p.Reason}, whole{&p.Tries},
		stamp{&p.DeliveredAt}, number{&p.HeardChars}, maybe{&p.Answer}, maybe{&p.ByID}, stamp{&p.At},
	}
}

// Outbox is the table of what waits to be told.
type Outbox struct{ db *database }

// OutboxBounds limit how many parcels are not over.
type OutboxBounds struct{ Device, All int }

// Add keeps parcels in one transaction, but for those that cannot be: failed has for each nil, [ErrNotFound] for a device that
// is not known, [ErrExists] for a key that its device had already, and [ErrFull] beyond the bounds.
func (t *Outbox) Add(ctx context.Context, all []Parcel, most OutboxBounds) (failed []error, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		failed = make([]error, len(all))
		if err := t.db.alone(ctx, tx, addToOutbox); err != nil { // so that of several who add one is first
			return err
		}
		open, err := count(ctx, tx, "SELECT COUNT(*) FROM outbox WHERE "+openParcel)
		for i, p := range all {
			if err != nil {
				return err
			}
			if open >= most.All {
				failed[i] = ErrFull
				continue
			}
			if failed[i], err = t.fits(ctx, tx, p, most.Device); failed[i] != nil || err != nil {
				continue
			}
			p.At = orNow(p.At, t.db.clock)
			p.DueAt = orNow(p.DueAt, func() time.Time { return p.At })
			_, err = execIn(ctx, tx, insert("outbox", parcelColumns), p.fields()...)
			open++
		}
		return err
	})
	return failed, err
}

// fits reports why a device cannot have a parcel.
func (t *Outbox) fits(ctx context.Context, tx *sql.Tx, p Parcel, most int) (why, err error) {
	known, err := count(ctx, tx, "SELECT COUNT(*) FROM devices WHERE id = $1", p.DeviceID)
	if err != nil || known == 0 {
		return ErrNotFound, err
	}
	if p.Key != "" {
		had, err := count(ctx, tx, "SELECT COUNT(*) FROM outbox WHERE device_id = $1 AND dedupe = $2", p.DeviceID, p.Key)
		if err != nil || had > 0 {
			return ErrExists, err
		}
	}
	open, err := count(ctx, tx, "SELECT COUNT(*) FROM outbox WHERE device_id = $1 AND "+openParcel, p.DeviceID)
	if open >= most {
		return ErrFull, err
	}
	return nil, err
}

// ParcelPick says which parcels of a device are meant.
type ParcelPick struct {
	DeviceID string
	Kinds    []string  // of these alone
	Any      bool      // Pressing does not count
	Pressing bool      // only what has a rank above zero, or is meant at once and was made after Fresh; else only what is neither
	Fresh    time.Time // of what is meant at once
	Least    int       // only of this rank or above
}

// Next returns what a device shall be told next: the highest rank first, then what is due first. [ErrNotFound]: nothing is due.
func (t *Outbox) Next(ctx context.Context, pick ParcelPick) (Parcel, error) {
	now, pressing := t.db.clock().UnixMilli(), "(rank > 0 OR (at_once AND at > $6))"
	switch {
	case pick.Any:
		pressing = "(at > $6 OR TRUE)"
	case !pick.Pressing:
		pressing = "NOT " + pressing
	}
	kinds := "'" + strings.Join(pick.Kinds, "', '") + "'" // names of this program
	return first[Parcel](ctx, t.db.read, selectParcel+" WHERE device_id = $1 AND state = 'waiting' AND due_at <= $2 AND COALESCE(not_before, 0) <= $3 AND "+
		"(ends_at IS NULL OR ends_at > $4) AND rank >= $5 AND kind IN ("+kinds+") AND "+pressing+" ORDER BY rank DESC, due_at, at, id LIMIT 1",
		pick.DeviceID, now, now, now, pick.Least, pick.Fresh.UnixMilli())
}

// Due returns when the next of what waits for a device and may not be told yet may be, with its rank. The zero time: nothing does.
func (t *Outbox) Due(ctx context.Context, deviceID string) (at time.Time, rank int, err error) {
	now := t.db.clock().UnixMilli()
	rows, err := list[waitingParcel](ctx, t.db.read, "SELECT CASE WHEN COALESCE(not_before, 0) > due_at THEN not_before ELSE due_at END AS due, rank FROM outbox "+
		"WHERE device_id = $1 AND state = 'waiting' AND (ends_at IS NULL OR ends_at > $2) AND (due_at > $3 OR not_before > $4) ORDER BY due, rank DESC LIMIT 1", deviceID, now, now, now)
	if err != nil || len(rows) == 0 {
		return time.Time{}, 0, err
	}
	return rows[0].at, rows[0].rank, nil
}

// waitingParcel has the time from which a parcel may be told.
type waitingParcel struct {
	at   time.Time
	rank int
}

func (p *waitingParcel) fields() []any { return []any{stamp{&p.at}, whole{&p.rank}} }

// Get returns the parcel of an id.
func (t *Outbox) Get(ctx context.Context, id string) (Parcel, error) {
	return first[Parcel](ctx, t.db.read, selectParcel+" WHERE id = $1", id)
}

// ParcelQuery says which parcels are listed.
type ParcelQuery struct {
	DeviceIDs []string // nil: of all devices
	Batch     string   // "": of any batch
	States    []string // nil: in any state
	Page      Page
}

// List lists parcels, the newest first.
func (t *Outbox) List(ctx context.Context, q ParcelQuery) ([]Parcel, error) {
	var args []any
	mark := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	among := func(column string, all []string) string {
		marks := []string{"''"}
		for _, one := range all {
			marks = append(marks, mark(one))
		}
		return column + " IN (" + strings.Join(marks, ", ") + ")"
	}
	at, id, limit := q.Page.bounds()
	where := []string{"(at, id) < (" + mark(at) + ", " + mark(id) + ")"}
	if q.DeviceIDs != nil {
		where = append(where, among("device_id", q.DeviceIDs))
	}
	if q.States != nil {
		where = append(where, among("state", q.States))
	}
	if q.Batch != "" {
		where = append(where, "batch = "+mark(q.Batch))
	}
	return list[Parcel](ctx, t.db.read, selectParcel+" WHERE "+strings.Join(where, " AND ")+" ORDER BY at DESC, id DESC LIMIT "+mark(limit), args...)
}

// Purge deletes parcels that were made before a time and are over.
func (t *Outbox) Purge(ctx context.Context, before time.Time) (int64, error) {
	return t.db.exec(ctx, "DELETE FROM outbox WHERE NOT "+openParcel+" AND at < $1", before.UnixMilli())
}

// changedParcel are the columns that change.
const changedParcel = "body, not_before, ends_at, state, reason, tries, delivered_at, heard_chars, answer"

// Change writes a parcel in place of was, if that still has its state and its tries; else [ErrConflict].
func (t *Outbox) Change(ctx context.Context, was, now Parcel) error {
	fields := []any{
		text{&now.Body}, stamp{&now.NotBefore}, stamp{&now.EndsAt}, text{&now.State}, maybe{&now.Reason}, whole{&now.Tries},
		stamp{&now.DeliveredAt}, number{&now.HeardChars}, maybe{&now.Answer},
	}
	n, err := t.db.exec(ctx, "UPDATE outbox SET "+assign(changedParcel)+" WHERE id = $10 AND state = $11 AND tries = $12", append(fields, was.ID, was.State, was.Tries)...)
	if err == nil && n == 0 {
		err = ErrConflict
	}
	return err
}

// Prolong moves the end of what waits for a device, "" all, and may wait for at least a time, to a later one.
func (t *Outbox) Prolong(ctx context.Context, deviceID string, least time.Duration, until time.Time) (int64, error) {
	return t.db.exec(ctx, "UPDATE outbox SET ends_at = $1 WHERE state = 'waiting' AND ends_at > $2 AND ends_at < $3 AND ends_at - due_at >= $4 AND (device_id = $5 OR $6 = '')",
		until.UnixMilli(), t.db.clock().UnixMilli(), until.UnixMilli(), least.Milliseconds(), deviceID, deviceID)
}

// Expire ends what has waited too long, at most limit of it, and returns that.
func (t *Outbox) Expire(ctx context.Context, limit int) (ended []Parcel, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		ended, err = list[Parcel](ctx, tx, selectParcel+" WHERE state = 'waiting' AND ends_at <= $1 ORDER BY ends_at LIMIT $2"+t.db.forUpdate(), t.db.clock().UnixMilli(), limit)
		for i := range ended {
			if err != nil {
				return err
			}
			ended[i].State = "expired"
			_, err = execIn(ctx, tx, "UPDATE outbox SET state = 'expired' WHERE id = $1", ended[i].ID)
		}
		return err
	})
	return ended, err
}

// NextEnd returns when the next of what waits ends; zero: nothing does.
func (t *Outbox) NextEnd(ctx context.Context) (at time.Time, err error) {
	err = t.db.read.QueryRowContext(ctx, "SELECT MIN(ends_at) FROM outbox WHERE state = 'waiting'").Scan(stamp{&at})
	return at, err
}

// Recover takes up what an earlier run of the program has left: what a device was given waits again, what it was being told is
// over, for nobody knows whether it was heard, and what was held back is told. It returns how many were lost.
func (t *Outbox) Recover(ctx context.Context) (lost int64, err error) {
	err = t.db.change(ctx, func(tx *sql.Tx) error {
		const given = "UPDATE outbox SET state = 'waiting', delivered_at = NULL, not_before = NULL, tries = tries - 1 WHERE state = 'given'"
		if _, err := execIn(ctx, tx, given); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "UPDATE outbox SET state = 'waiting' WHERE state = 'held'"); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "UPDATE outbox SET state = 'heard' WHERE state = 'telling' AND heard_chars > 0"); err != nil {
			return err
		}
		lost, err = execIn(ctx, tx, "UPDATE outbox SET state = 'cancelled', reason = 'lost' WHERE state = 'telling'")
		return err
	})
	return lost, err
}
