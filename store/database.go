package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// database owns the connections to one database. All tables share it.
type database struct {
	engine Engine
	path   string  // of SQLite's file
	now    *sql.DB // commits reach the disk before they return
	later  *sql.DB // commits survive the end of the process, and a power cut may take the last ones
	read   *sql.DB
	writer chan struct{} // SQLite: whoever writes holds its only place
	clock  func() time.Time
	health *health
}

func (d *database) close() error {
	return errors.Join(d.read.Close(), d.later.Close(), d.now.Close())
}

// change runs f in a transaction that is on the disk when change returns nil.
func (d *database) change(ctx context.Context, f func(tx *sql.Tx) error) error {
	return d.transact(ctx, d.now, f)
}

// transact runs f in a transaction of db. f may be run again only by the caller.
func (d *database) transact(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) (err error) {
	release, err := d.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	w := d.health.begin()
	defer func() { d.health.wrote(w, err) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(known(err), ignoreDone(tx.Rollback()))
	}
	return known(tx.Commit())
}

// hold takes the place of the writer, which release frees.
func (d *database) hold(ctx context.Context) (release func(), err error) {
	if d.writer == nil {
		return func() {}, ctx.Err()
	}
	select {
	case d.writer <- struct{}{}:
		return func() { <-d.writer }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// looked tells health how the database is when it is opened.
func (d *database) looked(ctx context.Context) {
	var newest time.Time
	if err := d.read.QueryRowContext(ctx, "SELECT MAX(at) FROM turns").Scan(stamp{&newest}); err != nil {
		return // whoever uses it is told
	}
	d.health.keeps(newest, d.size())
}

// size returns the bytes of the file of SQLite, its log not counted.
func (d *database) size() int64 {
	info, err := os.Stat(d.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// ignoreDone drops the error of a transaction that has ended by itself.
func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// exec runs one statement that changes rows, and returns how many.
func (d *database) exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = d.change(ctx, func(tx *sql.Tx) error {
		n, err = execIn(ctx, tx, query, args...)
		return err
	})
	return n, err
}

func execIn(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// execOne runs a statement that must change a row: [ErrNotFound] if it does not.
func (d *database) execOne(ctx context.Context, query string, args ...any) error {
	n, err := d.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}

// addToOutbox is the lock of who adds to the outbox.
const addToOutbox = 1

// alone has nobody else who asks for the same lock write until the transaction has ended. SQLite has one writer anyway.
func (d *database) alone(ctx context.Context, tx *sql.Tx, lock int64) error {
	if d.engine != Postgres {
		return nil
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", lock)
	return err
}

// forUpdate ends a SELECT within a transaction whose row is then changed. SQLite has one writer anyway.
func (d *database) forUpdate() string {
	if d.engine == Postgres {
		return " FOR UPDATE"
	}
	return ""
}

// lockFile names the file that carries the lock of a database. It stays when the lock is freed.
func lockFile(path string) string { return path + ".lock" }

// Lock keeps a data folder for one server that has its database elsewhere or none: path is that of the database which
// there would be. It is the lock that a server with that database has, and for which [Restore] looks; a [LockedError] if
// another server has it.
func Lock(path string) (unlock func(), err error) { return lock(path) }

// lock takes the lock of a database, which ends with the process at the latest: a [LockedError] if another server
// has it.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(lockFile(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		text, _ := io.ReadAll(io.LimitReader(f, 32)) // without it the lock is no less held
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return nil, &LockedError{Path: path, PID: pid}
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for people only
	}
	return func() {
		// Closing alone leaves it with a child that another goroutine has forked and that has not begun its program yet.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}, nil
}
