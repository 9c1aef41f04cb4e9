// Package store keeps what must outlive the program, in SQLite or PostgreSQL: devices and their pairing, people,
// agents, settings, secrets, reminders, and what was said. It imports nothing of this program, and nothing but it
// knows SQL.
//
// # Two ways in
//
// What is promised to somebody is written now: a method of a table that changes something has committed it, in a way
// that survives a power cut, when it returns nil. What only tells of the past is written later: [Log] takes finished
// turns and what was learned of a device without ever waiting, and writes them in batches.
//
// # Concurrency
//
// All methods may be called from any goroutine. SQLite has one writer at a time; others wait for it.
package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io/fs"
	"log/slog"
	"time"
)

// Engine is the kind of database.
type Engine string

// The engines.
const (
	SQLite   Engine = "sqlite"
	Postgres Engine = "postgres"
)

// Errors of tables. Others are of the database itself; [Store.Health] says what they mean.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("was changed meanwhile")
	ErrFull     = errors.New("there are too many")
)

// Options say where the database is.
type Options struct {
	URL     string           // postgres://…; "": SQLite
	Path    string           // file of SQLite
	Backups string           // folder that takes a copy of the file before each change of the schema; "": that of Path
	Tool    bool             // for a command beside a running server: the lock is not needed
	Look    bool             // only to read beside a running server: nothing is made, and the schema may be an older one
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: nothing is logged

	hooks hooks
}

// hooks let tests replace the driver, the look for network file systems and the migrations.
type hooks struct {
	wrap       func(driver.Connector) driver.Connector // between database/sql and SQLite's connections; nil: nothing
	filesystem func(dir string) string                 // names a network file system; nil: networkFilesystem
	migrations fs.FS                                   // nil: those of the program
}

// Tables are the tables, by what they own.
type Tables struct {
	Devices       *Devices
	Reminders     *Reminders
	Outbox        *Outbox
	Memories      *Memories
	Documents     *Documents
	Conversations *Conversations
	Turns         *Turns
	Talks         *Talks
	Recordings    *Recordings
	People        *People
	Users         *Users
	Sessions      *Sessions
	Invites       *Invites
	APITokens     *APITokens
	Agents        *Agents
	Settings      *Settings
	Secrets       *Secrets
	Switches      *Switches
	Routines      *Routines
	Audit         *Audit
}

// Store is an open database. It owns the connections, the lock of the file and the goroutine of [Log].
type Store struct {
	Tables
	Log    *Log
	db     *database
	unlock func()
	backup chan struct{} // 1: is full while one of [Backups] is being made
}

// Open opens the database, makes or changes its schema, and starts the writer of [Log]. What is wrong with the file
// is a [BrokenError], [NewerError] or [LockedError]; nothing was changed then. With Look a database that is not there, or
// has no tables yet, is [fs.ErrNotExist].
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	open := openSQLite
	if o.URL != "" {
		open = openPostgres
	}
	db, unlock, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	if !o.Look {
		db.looked(ctx)
	}
	s := &Store{db: db, unlock: unlock, Log: newLog(ctx, db, o.Log), backup: make(chan struct{}, 1)}
	s.Tables = tablesOf(db)
	return s, nil
}

func tablesOf(db *database) Tables {
	return Tables{
		Devices: &Devices{db}, Reminders: &Reminders{db}, Outbox: &Outbox{db}, Memories: &Memories{db}, Documents: &Documents{db},
		Conversations: &Conversations{db}, Turns: &Turns{db}, Talks: &Talks{db}, Recordings: &Recordings{db},
		People: &People{db}, Users: &Users{db}, Sessions: &Sessions{db}, Invites: &Invites{db}, APITokens: &APITokens{db},
		Agents: &Agents{db}, Settings: &Settings{db}, Secrets: &Secrets{db}, Switches: &Switches{db}, Routines: &Routines{db}, Audit: &Audit{db},
	}
}

// Close writes what waits, for ten seconds at most, ends the connections and frees the lock.
func (s *Store) Close() error {
	s.Log.close()
	err := s.db.close()
	s.unlock()
	return err
}
