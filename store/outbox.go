package store

import (
	"context"
	"time"
)

// Parcel is something that a device shall be told when it can be reached.
type Parcel struct {
	ID          string
	DeviceID    string
	Body        string // JSON
	Source      string // who sends it
	NotBefore   time.Time
	EndsAt      time.Time // zero: it waits for ever
	State       string    // waiting, telling, heard, expired or cancelled
	Tries       int
	DeliveredAt time.Time
	HeardChars  int
	ByID        string
	At          time.Time
}

const (
	parcelColumns = "id, device_id, body, source, not_before, ends_at, state, tries, delivered_at, heard_chars, by_id, at"
	selectParcel  = "SELECT " + parcelColumns + " FROM outbox"
)

func (p *Parcel) fields() []any {
	return []any{
		text{&p.ID}, text{&p.DeviceID}, text{&p.Body}, text{&p.Source}, stamp{&p.NotBefore}, stamp{&p.EndsAt}, text{&p.State}, whole{&p.Tries},
		stamp{&p.DeliveredAt}, number{&p.HeardChars}, maybe{&p.ByID}, stamp{&p.At},
	}
}

// Outbox is the table of what waits to be told.
type Outbox struct{ db *database }

// Add keeps a parcel.
func (t *Outbox) Add(ctx context.Context, p Parcel) error {
	p.At = orNow(p.At, t.db.clock)
	_, err := t.db.exec(ctx, insert("outbox", parcelColumns), p.fields()...)
	return err
}

// Waiting lists what a device shall be told now, the oldest first, at most limit of it.
func (t *Outbox) Waiting(ctx context.Context, deviceID string, limit int) ([]Parcel, error) {
	now := t.db.clock().UnixMilli()
	return list[Parcel](ctx, t.db.read, selectParcel+" WHERE device_id = $1 AND state = 'waiting' AND (not_before IS NULL OR not_before <= $2) "+
		"AND (ends_at IS NULL OR ends_at > $3) ORDER BY at, id LIMIT $4", deviceID, now, now, limit)
}

// Get returns the parcel of an id.
func (t *Outbox) Get(ctx context.Context, id string) (Parcel, error) {
	return first[Parcel](ctx, t.db.read, selectParcel+" WHERE id = $1", id)
}

// List lists the parcels of a device, or of all for "", the newest first.
func (t *Outbox) List(ctx context.Context, deviceID string, p Page) ([]Parcel, error) {
	at, id, limit := p.bounds()
	if deviceID == "" {
		return list[Parcel](ctx, t.db.read, selectParcel+" WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3", at, id, limit)
	}
	return list[Parcel](ctx, t.db.read, selectParcel+" WHERE device_id = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4", deviceID, at, id, limit)
}

// Open counts the parcels of a device that are not over.
func (t *Outbox) Open(ctx context.Context, deviceID string) (int, error) {
	return count(ctx, t.db.read, "SELECT COUNT(*) FROM outbox WHERE device_id = $1 AND state = 'waiting' AND (ends_at IS NULL OR ends_at > $2)",
		deviceID, t.db.clock().UnixMilli())
}

// Purge deletes parcels of before a time that do not wait any more.
func (t *Outbox) Purge(ctx context.Context, before time.Time) (int64, error) {
	return t.db.exec(ctx, "DELETE FROM outbox WHERE state <> 'waiting' AND at < $1", before.UnixMilli())
}

// Change writes a parcel in place of was, if that still has its state and its tries; else [ErrConflict].
func (t *Outbox) Change(ctx context.Context, was, now Parcel) error {
	const changed = "not_before, ends_at, state, tries, delivered_at, heard_chars"
	n, err := t.db.exec(ctx, "UPDATE outbox SET "+assign(changed)+" WHERE id = $7 AND state = $8 AND tries = $9",
		append(now.fields()[4:10], was.ID, was.State, was.Tries)...)
	if err == nil && n == 0 {
		err = ErrConflict
	}
	return err
}

// Prolong moves the end of what may wait for at least a time to a later one.
func (t *Outbox) Prolong(ctx context.Context, least time.Duration, until time.Time) (int64, error) {
	return t.db.exec(ctx, "UPDATE outbox SET ends_at = $1 WHERE state = 'waiting' AND ends_at > $2 AND ends_at < $3 AND ends_at - at >= $4",
		until.UnixMilli(), t.db.clock().UnixMilli(), until.UnixMilli(), least.Milliseconds())
}

// Expire ends what has waited too long, and returns how much that was.
func (t *Outbox) Expire(ctx context.Context) (int64, error) {
	return t.db.exec(ctx, "UPDATE outbox SET state = 'expired' WHERE state = 'waiting' AND ends_at <= $1", t.db.clock().UnixMilli())
}
