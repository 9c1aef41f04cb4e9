package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// Recording is the sound of one side of a turn.
type Recording struct {
	TurnID string
	Side   string // user or reply
	Path   string // of its file
	Length time.Duration
	Bytes  int
	EndsAt time.Time // it is deleted then
}

const (
	recordingColumns = "turn_id, side, path, ms, bytes, ends_at"
	selectRecording  = "SELECT " + recordingColumns + " FROM recordings"
)

// millis is a duration in a column that is NOT NULL.
type millis struct{ d *time.Duration }

// Value returns what the column holds.
func (c millis) Value() (driver.Value, error) { return c.d.Milliseconds(), nil }

// Scan takes in what the column holds.
func (c millis) Scan(src any) error { return span(c).Scan(src) }

func (r *Recording) fields() []any {
	return []any{text{&r.TurnID}, text{&r.Side}, text{&r.Path}, millis{&r.Length}, whole{&r.Bytes}, stamp{&r.EndsAt}}
}

// Recordings is the table of recordings.
type Recordings struct{ db *database }

// Of lists the recordings of a turn.
func (t *Recordings) Of(ctx context.Context, turnID string) ([]Recording, error) {
	return list[Recording](ctx, t.db.read, selectRecording+" WHERE turn_id = $1 ORDER BY side", turnID)
}

// Ended lists recordings whose time is over, those of longest ago first. The caller deletes them, then their files.
func (t *Recordings) Ended(ctx context.Context, limit int) ([]Recording, error) {
	return list[Recording](ctx, t.db.read, selectRecording+" WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2", t.db.clock().UnixMilli(), limit)
}

// Bytes is the size of all recordings.
func (t *Recordings) Bytes(ctx context.Context) (int, error) {
	return count(ctx, t.db.read, "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM recordings")
}

// ownSound is how many ms a device d keeps its recordings by days of its own, which are 0 for a hundred years.
const ownSound = "CASE d.keep_sound_days WHEN 0 THEN 36500 ELSE CAST(d.keep_sound_days AS BIGINT) END * 86400000"

// Put keeps recordings of turns that were written, in one transaction, in place of what was kept of the same sides.
// kept says of each whether its turn is there: those of other turns are not kept, which is no error. A power cut may
// take the last ones. Those of a device with days of its own ([Device.KeepSound]) end by these, in place of EndsAt.
func (t *Recordings) Put(ctx context.Context, all []Recording) (kept []bool, err error) {
	const query = "INSERT INTO recordings (" + recordingColumns + ") SELECT $1, $2, $3, CAST($4 AS INTEGER), CAST($5 AS BIGINT), " +
		"COALESCE((SELECT t.at + " + ownSound + " FROM turns t JOIN devices d ON d.id = t.device_id WHERE t.id = $1), CAST($6 AS BIGINT)) WHERE EXISTS (SELECT 1 FROM turns WHERE id = $7) " +
		"ON CONFLICT (turn_id, side) DO UPDATE SET path = EXCLUDED.path, ms = EXCLUDED.ms, bytes = EXCLUDED.bytes, ends_at = EXCLUDED.ends_at"
	err = t.db.transact(ctx, t.db.later, func(tx *sql.Tx) error {
		kept = make([]bool, len(all))
		for i := range all {
			n, err := execIn(ctx, tx, query, append(all[i].fields(), all[i].TurnID)...)
			if err != nil {
				return err
			}
			kept[i] = n > 0
		}
		return nil
	})
	return kept, err
}

// Oldest lists recordings, those of the oldest turns first, at most limit of them.
func (t *Recordings) Oldest(ctx context.Context, limit int) ([]Recording, error) {
	return list[Recording](ctx, t.db.read, selectRecording+" ORDER BY turn_id, side LIMIT $1", limit)
}

// OfConversation lists the recordings of all turns of a conversation.
func (t *Recordings) OfConversation(ctx context.Context, conversationID string) ([]Recording, error) {
	return list[Recording](ctx, t.db.read, selectRecording+" WHERE turn_id IN (SELECT id FROM turns WHERE conversation_id = $1)", conversationID)
}

// Shorten has recordings end at most that long after their turn, or the days that their device has of its own.
func (t *Recordings) Shorten(ctx context.Context, keep time.Duration) error {
	const end = "(SELECT t.at + COALESCE(" + ownSound + ", CAST($1 AS BIGINT)) FROM turns t JOIN devices d ON d.id = t.device_id WHERE t.id = turn_id)"
	_, err := t.db.exec(ctx, "UPDATE recordings SET ends_at = "+end+" WHERE ends_at > "+end, keep.Milliseconds())
	return err
}

// DeleteAll deletes recordings. One that is not there is no error.
func (t *Recordings) DeleteAll(ctx context.Context, all []Recording) error {
	return t.db.change(ctx, func(tx *sql.Tx) error {
		for _, r := range all {
			if _, err := execIn(ctx, tx, "DELETE FROM recordings WHERE turn_id = $1 AND side = $2", r.TurnID, r.Side); err != nil {
				return err
			}
		}
		return nil
	})
}
