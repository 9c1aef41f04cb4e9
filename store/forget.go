package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Forget deletes a device with all that was said to it and promised on it, also what still waits to be written. When
// it returns nil, none of these words is left in the files of SQLite: deleted rows are overwritten and the
// write-ahead log is emptied. It returns the paths of recordings, which the caller deletes; copies of the database
// are replaced by [Backups.Renew]. A device that is not known is no error.
func (s *Store) Forget(ctx context.Context, deviceID string) (recordings []string, err error) {
	s.Log.forget(deviceID)
	err = s.db.change(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT path FROM recordings WHERE turn_id IN (SELECT id FROM turns WHERE device_id = $1)", deviceID)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var path string
			if err := rows.Scan(&path); err != nil {
				return err
			}
			recordings = append(recordings, path)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "UPDATE audit SET object = NULL WHERE object = $1", deviceID); err != nil {
			return err
		}
		if _, err := execIn(ctx, tx, "UPDATE memory_places SET gone = TRUE WHERE device_id = $1 AND what = ''", deviceID); err != nil {
			return err
		}
		_, err = execIn(ctx, tx, "DELETE FROM devices WHERE id = $1", deviceID)
		return err
	})
	if err == nil {
		err = s.db.empty(ctx)
	}
	return recordings, err
}

// Scrub drops what has come to be written since [Store.Forget] of a device that was still talking, and leaves none of
// its words in the files of SQLite.
func (s *Store) Scrub(ctx context.Context, deviceID string) error {
	s.Log.forget(deviceID)
	return s.db.empty(ctx)
}

// emptyAgain is the time between attempts to empty the write-ahead log, which readers hold up.
const emptyAgain = 20 * time.Millisecond

var errHeldUp = errors.New("the write-ahead log could not be emptied")

// empty moves what is in SQLite's write-ahead log into the database and cuts the log.
func (d *database) empty(ctx context.Context) error {
	if d.engine != SQLite || d.health.network != "" {
		return nil
	}
	for {
		if busy, err := d.checkpoint(ctx); err != nil || !busy {
			return err
		}
		select {
		case <-time.After(emptyAgain):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errHeldUp, ctx.Err())
		}
	}
}

// checkpoint tries once to empty the log, and reports whether others are reading or writing. It does not wait for them,
// since nobody can write meanwhile.
func (d *database) checkpoint(ctx context.Context) (busy bool, err error) {
	release, err := d.hold(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	if _, err := d.now.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return false, err
	}
	var pages, moved int
	err = d.now.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
	_, back := d.now.ExecContext(context.WithoutCancel(ctx), "PRAGMA "+busyTimeout)
	return busy, errors.Join(err, back)
}
