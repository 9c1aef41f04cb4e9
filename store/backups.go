package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Backups makes a backup each night and keeps the last ones.
type Backups struct {
	Store *Store
	Dir   string
	Keep  int                    // 0: seven
	Zone  func() *time.Location  // of the night; nil: the local one
	Files func() ([]File, error) // beside the database; nil: none
	Log   *slog.Logger
}

const (
	backupPattern = "xiaozhi-*.tar.gz"
	schemaPattern = "schema-*.db"
	backupName    = "xiaozhi-20060102T150405Z.tar.gz" // as a layout of a time in UTC
	stampOfSchema = "20060102T150405Z"                // as a layout; fractions of seconds may follow
	backupHour    = 3                                 // of the night
	backupCheck   = 10 * time.Minute                  // between looks at the clock, which may be set
)

// Run makes backups until ctx ends, and returns then. That of a night in which the program did not run is made ten
// minutes after its start.
func (b *Backups) Run(ctx context.Context) {
	for _, name := range b.unfinished() { // the program was killed
		if err := os.Remove(name); err != nil {
			b.Log.Warn("what is left of a backup is not deleted", "err", err)
		}
	}
	tick := time.NewTicker(backupCheck)
	defer tick.Stop()
	for began := b.Store.db.clock(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := b.Store.db.clock()
		last := b.newest(now)
		if last.IsZero() {
			began = b.since(ctx, began, now)
			last = began
		}
		if !backupDue(last, now, b.zone()) {
			continue
		}
		if name, err := b.Make(ctx, Nightly); err == nil {
			b.Log.Info("backed up", "file", name)
		} else if ctx.Err() == nil && !errors.Is(err, ErrBackupRuns) {
			b.Log.Error("no backup was made", "err", err)
		}
	}
}

// since returns the time from which on there has been something to keep: the start of the program, or the first device.
func (b *Backups) since(ctx context.Context, began, now time.Time) time.Time {
	all := []time.Time{began, now} // the clock may be set back
	if ms, err := count(ctx, b.Store.db.read, "SELECT COALESCE(MIN(first_at), 0) FROM devices"); err == nil && ms > 0 {
		all = append(all, time.UnixMilli(int64(ms)))
	}
	return slices.MinFunc(all, time.Time.Compare)
}

// zone returns that of the night to come.
func (b *Backups) zone() *time.Location {
	if b.Zone == nil {
		return time.Local
	}
	return b.Zone()
}

// backupDue reports whether the hour of backups has been since the last one.
func backupDue(last, now time.Time, zone *time.Location) bool {
	now = now.In(zone)
	due := time.Date(now.Year(), now.Month(), now.Day(), backupHour, 0, 0, 0, zone)
	if due.After(now) {
		due = due.AddDate(0, 0, -1)
	}
	return last.Before(due)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// list lists the backups of the folder that [Backups.Make] has made, the oldest first.
func (b *Backups) list() []string {
	names := slices.DeleteFunc(find(b.Dir, backupPattern), func(name string) bool {
		_, err := time.Parse(backupName, filepath.Base(name))
		return err != nil
	})
	slices.Sort(names)
	return names
}

// newest is the time of the last backup before a time, zero if there is none.
func (b *Backups) newest(before time.Time) time.Time {
	for _, name := range slices.Backward(b.list()) {
		if at, err := time.Parse(backupName, filepath.Base(name)); err == nil && !at.After(before) {
			return at
		}
	}
	return time.Time{}
}

// ErrBackupRuns says that a backup is being made.
var ErrBackupRuns = errors.New("a backup is being made")

// Running reports whether a backup is being made, by this or by another [Backups] of the store.
func (b *Backups) Running() bool { return len(b.Store.backup) > 0 }

// Make makes a backup now, deletes the oldest of those that are too many, and returns its name. While one is being made the
// error is [ErrBackupRuns].
func (b *Backups) Make(ctx context.Context, cause Cause) (string, error) {
	select {
	case b.Store.backup <- struct{}{}:
	default:
		return "", ErrBackupRuns
	}
	defer func() { <-b.Store.backup }()
	return b.make(ctx, cause)
}

// make makes a backup while nobody else does.
func (b *Backups) make(ctx context.Context, cause Cause) (string, error) {
	var files []File
	if b.Files != nil {
		var err error
		if files, err = b.Files(); err != nil {
			return "", err
		}
	}
	name := filepath.Join(b.Dir, b.Store.db.clock().UTC().Format(backupName))
	if err := b.Store.archive(ctx, name, cause, files); err != nil {
		return "", err
	}
	keep := b.Keep
	if keep <= 0 {
		keep = 7
	}
	all := b.list()
	for _, old := range all[:max(0, len(all)-keep)] {
		if err := os.Remove(old); err != nil {
			return name, err
		}
	}
	return name, nil
}

// Cause says why a backup was made.
type Cause string

// The causes.
const (
	ByHand        Cause = "hand"
	Nightly       Cause = "night"
	AfterForget   Cause = "forget"  // in the place of those that held what was said
	BeforeUpgrade Cause = "upgrade" // a copy of the database alone, from before its schema was changed
)

// Copy is a backup in the folder.
type Copy struct {
	Path  string
	At    time.Time
	Size  int64 // bytes
	Cause Cause // "": an older version of the program made it and did not say
	Bad   error // why it cannot be restored, as far as its beginning tells
}

// All lists the backups of the folder with the copies from before changes of the schema, the newest first. Of each only the
// beginning is read.
func (b *Backups) All() (all []Copy) {
	for _, path := range b.list() {
		at, _ := time.Parse(backupName, filepath.Base(path)) // the list has no others
		c := Copy{Path: path, At: at}
		if m, err := manifestOf(path); err == nil {
			c.Cause = m.Cause
		} else if c.Bad = err; errors.Is(err, fs.ErrNotExist) {
			continue
		}
		all = append(all, c)
	}
	for _, path := range find(b.Dir, schemaPattern) {
		_, stamp, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".db"), "schema-"), "-")
		if at, err := time.Parse(stampOfSchema, stamp); err == nil {
			all = append(all, Copy{Path: path, At: at, Cause: BeforeUpgrade})
		}
	}
	for i := range all {
		if info, err := os.Stat(all[i].Path); err == nil {
			all[i].Size = info.Size()
		}
	}
	slices.SortFunc(all, func(a, b Copy) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.Path, a.Path)) })
	return all
}

// Copies lists the backups of the folder, the copies from before changes of the schema, and what is left of those that
// were not finished.
func (b *Backups) Copies() []string {
	return slices.Concat(find(b.Dir, schemaPattern), b.list(), b.unfinished())
}

// find lists what is in a folder by a pattern of names. The name of the folder may hold the signs of patterns.
func find(dir, pattern string) []string {
	names, _ := fs.Glob(os.DirFS(dir), pattern) // the patterns are right
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// unfinished lists what is left in the folder of backups and copies that were not finished, or are being made.
func (b *Backups) unfinished() (all []string) {
	for _, pattern := range []string{backupPattern + partEnd, backupPattern + copyEnd, schemaPattern + partEnd} {
		all = append(all, find(b.Dir, pattern)...)
	}
	return all
}

// Renew makes a backup and deletes all others, and the copies from before changes of the schema: after [Store.Forget]
// no copy has the words any more. One that is being made is waited for, as it may hold them.
func (b *Backups) Renew(ctx context.Context) error {
	select {
	case b.Store.backup <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.Store.backup }()
	name, err := b.make(ctx, AfterForget)
	if err != nil {
		return err
	}
	for _, file := range b.Copies() {
		if file != name {
			err = errors.Join(err, os.RemoveAll(file)) // one that was being made may be gone
		}
	}
	return err
}
