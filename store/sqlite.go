package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mattn/go-sqlite3"
)

// checkTime limits the check of the whole file at start. Larger files are checked by each backup.
const checkTime = 250 * time.Millisecond

// SQLiteVersion returns the version of SQLite inside the program, such as 3.50.4.
func SQLiteVersion() string {
	v, _, _ := sqlite3.Version()
	return v
}

// openSQLite opens the file, which it makes if it is not there, for this server alone.
func openSQLite(ctx context.Context, o Options) (_ *database, _ func(), err error) {
	if o.Look {
		return lookSQLite(ctx, o)
	}
	dir := filepath.Dir(o.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	if o.Backups == "" {
		o.Backups = dir
	}
	unlock, err := lock(o.Path)
	alone := err == nil
	if _, locked := errors.AsType[*LockedError](err); locked && o.Tool {
		unlock, err = func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if err := makeFile(o.Path); err != nil {
		return nil, nil, o.broken(err)
	}
	filesystem := networkFilesystem
	if o.hooks.filesystem != nil {
		filesystem = o.hooks.filesystem
	}
	network := filesystem(dir)
	if network != "" {
		o.Log.Warn("the database is on a network file system: it does without its write-ahead log, and is slower", "path", o.Path, "filesystem", network)
	}
	d := &database{engine: SQLite, path: o.Path, clock: o.Now, writer: make(chan struct{}, 1), health: &health{network: network, clock: o.Now}}
	if err := d.connect(o.hooks.wrap); err != nil {
		return nil, nil, err
	}
	if err := d.upSQLite(ctx, o, alone); err != nil {
		return nil, nil, errors.Join(err, d.close())
	}
	return d, unlock, nil
}

// lookSQLite opens the file for reading, if it is there, sound, ours and not too new.
func lookSQLite(ctx context.Context, o Options) (*database, func(), error) {
	f, err := os.Open(o.Path)
	if err != nil {
		return nil, nil, err
	}
	empty, err := checkMagic(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, o.broken(err)
	}
	if empty {
		return nil, nil, &fs.PathError{Op: "open", Path: o.Path, Err: fs.ErrNotExist}
	}
	d := &database{engine: SQLite, path: o.Path, clock: o.Now, writer: make(chan struct{}, 1), health: &health{network: networkFilesystem(filepath.Dir(o.Path)), clock: o.Now}}
	if err := d.connect(nil); err != nil {
		return nil, nil, err
	}
	if _, _, err := d.lookAt(ctx, o); err != nil {
		return nil, nil, errors.Join(err, d.close())
	}
	return d, func() {}, nil
}

// connect prepares the connections; each is made when it is used.
func (d *database) connect(wrap func(driver.Connector) driver.Connector) error {
	journal := "journal_mode = WAL"
	if d.health.network != "" {
		journal = "journal_mode = TRUNCATE"
	}
	for _, c := range []struct {
		to      **sql.DB
		conns   int
		pragmas []string
	}{
		{&d.now, 1, []string{journal, "synchronous = FULL", "cache_size = -1024"}},
		{&d.later, 1, []string{journal, "synchronous = NORMAL", "cache_size = -1024"}},
		{&d.read, 4, []string{journal, "cache_size = -512", "query_only = ON"}},
	} {
		var open driver.Connector = &connector{name: fileName(d.path, "rwc"), pragmas: c.pragmas}
		if wrap != nil {
			open = wrap(open)
		}
		db := sql.OpenDB(open)
		db.SetMaxOpenConns(c.conns)
		db.SetMaxIdleConns(1)
		if c.conns > 1 {
			db.SetConnMaxIdleTime(time.Minute)
		}
		*c.to = db
	}
	return nil
}

// fileName names a file for SQLite. Transactions take the place of the writer when they begin, not when they first
// write: so they wait for it instead of failing.
func fileName(path, mode string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_txlock=immediate&mode=" + mode
}

// connector makes connections of SQLite that are set in one way.
type connector struct {
	name    string
	pragmas []string
}

// busyTimeout is how long a connection waits for other processes, in ms.
const busyTimeout = "busy_timeout = 5000"

// always is set on every connection.
var always = []string{busyTimeout, "foreign_keys = ON", "secure_delete = ON", "temp_store = MEMORY", "journal_size_limit = 4194304"}

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	return c.Driver().Open(c.name)
}

func (c *connector) Driver() driver.Driver {
	return &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		for _, pragma := range slices.Concat(always, c.pragmas) {
			if _, err := conn.Exec("PRAGMA "+pragma, nil); err != nil {
				return err
			}
		}
		return nil
	}}
}

// magic begins every database of SQLite.
const magic = "SQLite format 3\x00"

var errNotSQLite = errors.New("it is no file of SQLite")

// makeFile makes an empty file that only the owner may read, or looks whether the one that is there is of SQLite.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	_, err = checkMagic(f)
	return err
}

// checkMagic looks whether a file is of SQLite, or empty.
func checkMagic(f io.Reader) (empty bool, err error) {
	head := make([]byte, len(magic))
	switch n, err := io.ReadFull(f, head); {
	case n == 0 && errors.Is(err, io.EOF):
		return true, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return false, err
	case string(head[:n]) != magic:
		return false, errNotSQLite
	}
	return false, nil
}

// broken says of errors of a damaged file where the file is and what may take its place. Others stay as they are.
func (o Options) broken(err error) error {
	if err == nil || !errors.Is(err, errNotSQLite) && troubleOf(err) != TroubleBroken {
		return err
	}
	return &BrokenError{Path: o.Path, Backup: findBackup(o.Backups), Err: err}
}

// lookAt looks whether the file is sound, ours and not too new, and returns the version of its schema.
func (d *database) lookAt(ctx context.Context, o Options) (m *migrator, has int64, err error) {
	if err := d.check(ctx, checkTime); err != nil {
		return nil, 0, o.broken(err)
	}
	foreign, err := count(ctx, d.now, "SELECT COUNT(*) FROM sqlite_master WHERE NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'goose_db_version')")
	if err != nil {
		return nil, 0, o.broken(err)
	}
	if foreign > 0 {
		return nil, 0, &ForeignError{Path: o.Path}
	}
	if m, err = newMigrator(d.now, SQLite, o.hooks.migrations); err != nil {
		return nil, 0, err
	}
	if has, err = m.GetDBVersion(ctx); err != nil {
		return nil, 0, o.broken(err)
	}
	if has > m.latest() {
		return nil, 0, &NewerError{Path: o.Path, Has: has, Knows: m.latest(), Backup: findSchemaBackup(o.Backups, m.latest())}
	}
	return m, has, nil
}

// upSQLite changes the schema of a file that is sound and ours if this process is alone.
func (d *database) upSQLite(ctx context.Context, o Options, alone bool) error {
	m, has, err := d.lookAt(ctx, o)
	if err != nil {
		return err
	}
	if !alone && has < m.latest() {
		return &LockedError{Path: o.Path}
	}
	m.backup = func(ctx context.Context, from int64) error {
		name := schemaBackup(o.Backups, from, o.Now())
		o.Log.Info("the schema of the database is changed", "from", from, "to", m.latest(), "backup", name)
		if err := d.copyTo(ctx, name+partEnd); err != nil {
			return err
		}
		return publish(name+partEnd, name)
	}
	return o.broken(m.up(ctx))
}

// check reads the whole file, for as long as it may, and returns what is wrong with it.
func (d *database) check(ctx context.Context, limit time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	var said string
	err := d.now.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said)
	switch {
	case ctx.Err() != nil:
		return nil // what was read is sound
	case err != nil:
		return err
	case said != "ok":
		return fmt.Errorf("%w: %s", errUnsound, said)
	}
	return nil
}

var errUnsound = errors.New("the check of the database failed")

// copyTo writes a sound copy of the database to a file, for the owner only, while it is used. There is none if it fails.
func (d *database) copyTo(ctx context.Context, name string) error {
	f, err := createPart(name) // an empty file keeps its mode
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := errors.Join(d.vacuumInto(ctx, name), checkFile(ctx, name)); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// vacuumInto copies on a connection of its own, beside which others write if the journal lets them.
func (d *database) vacuumInto(ctx context.Context, name string) error {
	if d.health.network != "" {
		release, err := d.hold(ctx)
		if err != nil {
			return err
		}
		defer release()
	}
	db := sql.OpenDB(&connector{name: fileName(d.path, "rw"), pragmas: []string{"cache_size = -1024"}})
	_, err := db.ExecContext(ctx, "VACUUM INTO $1", name)
	return errors.Join(err, db.Close())
}

// checkFile looks whether a file is a sound database.
func checkFile(ctx context.Context, name string) error {
	db := sql.OpenDB(&connector{name: fileName(name, "ro") + "&immutable=1"})
	defer db.Close()
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errUnsound, said)
	}
	return nil
}

// findBackup returns the newest copy of the database in a folder, or "".
func findBackup(dir string) string {
	var found string
	for _, pattern := range []string{backupPattern, schemaPattern} {
		for _, name := range find(dir, pattern) {
			if found == "" || modified(name).After(modified(found)) {
				found = name
			}
		}
	}
	return found
}

// known turns an error of the database that is an answer into one of this package. The error itself stays within it.
func known(err error) error {
	if err == nil {
		return nil
	}
	_, is := meaning(err)
	if is == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", is, err)
}

// troubleOf says what an error of the database tells of it.
func troubleOf(err error) Trouble {
	if errors.Is(err, errUnsound) {
		return TroubleBroken
	}
	trouble, _ := meaning(err)
	return trouble
}

func meaning(err error) (trouble Trouble, is error) {
	e, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return postgresError(err)
	}
	switch e.ExtendedCode {
	case sqlite3.ErrConstraintUnique, sqlite3.ErrConstraintPrimaryKey:
		return "", ErrExists
	case sqlite3.ErrConstraintForeignKey:
		return "", ErrNotFound
	}
	switch e.Code {
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrMismatch:
		return "", errData
	case sqlite3.ErrFull:
		return TroubleFull, nil
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return TroubleBroken, nil
	}
	if e.SystemErrno == syscall.ENOSPC || e.SystemErrno == syscall.EDQUOT {
		return TroubleFull, nil
	}
	return TroubleFailing, nil
}
