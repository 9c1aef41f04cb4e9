package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	sessionlock "github.com/pressly/goose/v3/lock"
)

// migrations are the steps of the schema. Each is one statement for goose, which would look
// for the end of others in each line, with a buffer of 4 MiB.
//
//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the version of the schema of databases that this program writes.
func Schema() int64 {
	files, err := migrations.ReadDir("migrations")
	if err != nil || len(files) == 0 {
		return 0 // they are in the program
	}
	number, _, _ := strings.Cut(files[len(files)-1].Name(), "_") // in the order of their names, as goose wants them
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// dialect reads migrations in the words of an engine.
type dialect struct {
	fs.FS

	swap *strings.Replacer
}

func (d dialect) Open(name string) (fs.File, error) {
	f, err := d.FS.Open(name)
	if err != nil || !strings.HasSuffix(name, ".sql") {
		return f, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &swapped{Reader: bytes.NewReader([]byte(d.swap.Replace(string(all)))), FileInfo: info}, f.Close()
}

// swapped is a file whose words were swapped.
type swapped struct {
	*bytes.Reader
	fs.FileInfo
}

func (s *swapped) Stat() (fs.FileInfo, error) { return s, nil }
func (s *swapped) Size() int64                { return s.Reader.Size() }
func (s *swapped) Close() error               { return nil }

// migrator brings the schema of a database up to that of the program, forward only.
type migrator struct {
	*goose.Provider
	backup func(ctx context.Context, from int64) error // nil: there is none
}

// newMigrator takes the migrations of the program unless others are given.
func newMigrator(db *sql.DB, engine Engine, files fs.FS) (*migrator, error) {
	name, swap := goose.DialectSQLite3, strings.NewReplacer()
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if engine == Postgres { // which several servers may open at once
		name, swap = goose.DialectPostgres, strings.NewReplacer(" BLOB", " BYTEA")
		one, err := sessionlock.NewPostgresSessionLocker(sessionlock.WithLockTimeout(1, 60), sessionlock.WithUnlockTimeout(1, 5))
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(one))
	}
	if files == nil {
		var err error
		if files, err = fs.Sub(migrations, "migrations"); err != nil {
			return nil, err
		}
	}
	p, err := goose.NewProvider(name, db, dialect{files, swap}, options...)
	return &migrator{Provider: p}, err
}

// latest is the version of the schema that the program knows.
func (m *migrator) latest() int64 {
	all := m.ListSources()
	return all[len(all)-1].Version
}

// up takes each step that is missing, with a backup before it unless the database is new.
func (m *migrator) up(ctx context.Context) error {
	for fresh := false; ; {
		has, err := m.GetDBVersion(ctx)
		if err != nil || has >= m.latest() {
			return err
		}
		fresh = fresh || has == 0
		if !fresh && m.backup != nil {
			if err := m.backup(ctx, has); err != nil {
				return fmt.Errorf("back up before changing the schema: %w", err)
			}
		}
		if _, err := m.UpByOne(ctx); err != nil && !errors.Is(err, goose.ErrNoNextVersion) { // another server has taken the step
			return fmt.Errorf("change the schema: %w", err)
		}
	}
}

// schemaBackup names the copy of a database from before a change of its schema.
func schemaBackup(dir string, from int64, at time.Time) string {
	return filepath.Join(dir, fmt.Sprintf("schema-%d-%s.db", from, at.UTC().Format("20060102T150405.000Z")))
}

// findSchemaBackup returns the newest copy that a program of a version can read, or "".
func findSchemaBackup(dir string, knows int64) string {
	names := find(dir, schemaPattern)
	slices.SortFunc(names, func(a, b string) int { return modified(b).Compare(modified(a)) })
	for _, name := range names {
		var from int64
		if _, err := fmt.Sscanf(filepath.Base(name), "schema-%d-", &from); err == nil && from <= knows {
			return name
		}
	}
	return ""
}

// modified is the time at which a file was written, zero if it is not there.
func modified(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
