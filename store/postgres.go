package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// connectTime limits an attempt to connect, unless the URL says otherwise.
const connectTime = 5 * time.Second

// openPostgres connects to PostgreSQL. Several servers may share a database, so there is no lock.
func openPostgres(ctx context.Context, o Options) (*database, func(), error) {
	pool := func(conns int, settings map[string]string) (*sql.DB, error) {
		c, err := pgx.ParseConfig(o.URL)
		if err != nil {
			return nil, fmt.Errorf("store.url: %w", err) // the password is not part of the error
		}
		c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connectTime)
		maps.Copy(c.RuntimeParams, settings)
		db := stdlib.OpenDB(*c)
		db.SetMaxOpenConns(conns)
		db.SetMaxIdleConns(1)
		db.SetConnMaxIdleTime(time.Minute)
		return db, nil
	}
	d := &database{engine: Postgres, clock: o.Now, health: &health{clock: o.Now}}
	var err error
	if d.now, err = pool(4, map[string]string{"synchronous_commit": "on"}); err != nil {
		return nil, nil, err
	}
	if d.later, err = pool(1, map[string]string{"synchronous_commit": "off"}); err != nil {
		return nil, nil, err
	}
	if d.read, err = pool(4, map[string]string{"default_transaction_read_only": "on"}); err != nil {
		return nil, nil, err
	}
	if err := d.upPostgres(ctx, o); err != nil {
		return nil, nil, errors.Join(err, d.close())
	}
	return d, func() {}, nil
}

// UnreachableError says that the PostgreSQL database does not answer, or lets nobody in.
type UnreachableError struct{ Err error }

// Error says why.
func (e *UnreachableError) Error() string { return "connect to PostgreSQL: " + e.Err.Error() }

// Unwrap returns why.
func (e *UnreachableError) Unwrap() error { return e.Err }

func (d *database) upPostgres(ctx context.Context, o Options) error {
	if o.Look {
		tables, err := count(ctx, d.read, "SELECT COUNT(*) FROM pg_tables WHERE tablename = 'goose_db_version' AND schemaname = current_schema()")
		if err != nil {
			return &UnreachableError{Err: err}
		}
		if tables == 0 {
			return fs.ErrNotExist
		}
	}
	m, err := newMigrator(d.now, Postgres, o.hooks.migrations)
	if err != nil {
		return err
	}
	has, err := m.GetDBVersion(ctx)
	if err != nil {
		return &UnreachableError{Err: err}
	}
	if has > m.latest() {
		return &NewerError{Path: "the PostgreSQL database", Has: has, Knows: m.latest()}
	}
	if o.Look {
		return nil
	}
	if has > 0 && has < m.latest() {
		o.Log.Warn("the schema is changed, and PostgreSQL is backed up by its own tools", "has", has, "knows", m.latest())
	}
	return m.up(ctx)
}

// postgresError says what an error of PostgreSQL means.
func postgresError(err error) (trouble Trouble, is error) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return TroubleFailing, nil
	case e.Code == "23505": // unique_violation
		return "", ErrExists
	case e.Code == "23503": // foreign_key_violation
		return "", ErrNotFound
	case len(e.Code) == 5 && (e.Code[:2] == "22" || e.Code[:2] == "23"): // data that cannot be written
		return "", errData
	case e.Code == "53100":
		return TroubleFull, nil
	case e.Code == "XX001" || e.Code == "XX002":
		return TroubleBroken, nil
	}
	return TroubleFailing, nil
}
