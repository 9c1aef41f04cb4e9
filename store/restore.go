package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Restore puts a backup into the place of what is in the data folder, and returns the folder within it where that
// lies from then on, "" if there was nothing. The database of the archive goes to the file path. It refuses while a
// server holds the lock ([LockedError]), and what is not sound ([ErrArchive], [BrokenError], [NewerError]): then
// nothing has changed.
func Restore(ctx context.Context, archive, data, path string, now time.Time) (aside string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	unlock, err := lock(path)
	if err != nil {
		return "", err
	}
	defer unlock()
	for _, dir := range find(data, stagedPattern) { // a restore was killed
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	staged, err := os.MkdirTemp(data, stagedPattern)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staged)) }()
	m, names, err := unpack(archive, staged)
	if err != nil {
		return "", err
	}
	r := restoring{staged: staged, data: data, path: path, aside: filepath.Join(data, "before-restore-"+now.UTC().Format("20060102T150405Z"))}
	for _, name := range names {
		file, ok := strings.CutPrefix(name, filesFolder+string(filepath.Separator))
		if ok && strings.HasPrefix(filepath.Join(data, file), path) { // it would take the place of what is checked
			return "", fmt.Errorf("%s: %w: %q does not belong into it", archive, ErrArchive, filepath.ToSlash(name))
		}
	}
	if m.Engine == SQLite {
		if err := checkStaged(ctx, filepath.Join(staged, databaseName), archive); err != nil {
			return "", err
		}
		if err := r.database(ctx); err != nil {
			return "", err
		}
	}
	for _, name := range names {
		if file, ok := strings.CutPrefix(name, filesFolder+string(filepath.Separator)); ok {
			if err := r.move(filepath.Join(staged, name), filepath.Join(data, file), file); err != nil {
				return r.aside, err
			}
		}
	}
	if err := syncFile(data); err != nil || r.used {
		return r.aside, err
	}
	return "", nil
}

// stagedPattern names the folder into which an archive is unpacked.
const stagedPattern = "restore-*.part"

// checkStaged looks whether the database of an archive is sound and of a schema that is known.
func checkStaged(ctx context.Context, name, archive string) error {
	_, err := os.Stat(name)
	if err == nil {
		err = checkFile(ctx, name)
	}
	if err == nil {
		err = checkSchema(ctx, name, archive)
	}
	if err != nil && (errors.Is(err, os.ErrNotExist) || troubleOf(err) == TroubleBroken) {
		return &BrokenError{Path: archive, Err: err}
	}
	return err
}

func checkSchema(ctx context.Context, name, archive string) error {
	d := &database{path: name, health: &health{network: networkFilesystem(filepath.Dir(name))}}
	if err := d.connect(nil); err != nil {
		return err
	}
	m, err := newMigrator(d.now, SQLite, nil)
	if err != nil {
		return errors.Join(err, d.close())
	}
	has, err := m.GetDBVersion(ctx)
	if err := errors.Join(err, d.close()); err != nil {
		return err
	}
	if has > m.latest() {
		return &NewerError{Path: archive, Has: has, Knows: m.latest()}
	}
	return nil
}

// restoring moves what was unpacked into its place, and what is there aside.
type restoring struct {
	staged, data, path, aside string
	used                      bool // something lies aside
}

// database takes the place of the one that is there. At each moment one of the two is whole in its place.
func (r *restoring) database(ctx context.Context) error {
	if _, err := os.Stat(r.path); err == nil {
		// Its log is moved into it, if it is sound; else the log goes aside with it.
		d := &database{engine: SQLite, path: r.path, health: &health{network: networkFilesystem(r.data)}}
		if err := d.connect(nil); err != nil {
			return err
		}
		_ = d.empty(ctx) // what is broken is set aside as it is
		if err := d.close(); err != nil {
			return err
		}
		if err := r.keep(r.path, filepath.Base(r.path), os.Link); err != nil {
			return err
		}
	}
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if err := r.keep(r.path+end, filepath.Base(r.path)+end, os.Rename); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(r.staged, databaseName), r.path)
}

// keep puts a file aside, if it is there.
func (r *restoring) keep(path, name string, put func(from, to string) error) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	to := filepath.Join(r.aside, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	r.used = true
	if err := put(path, to); err != nil {
		if err := os.Rename(path, to); err != nil { // a file system without links
			return fmt.Errorf("set %s aside: %w", path, err)
		}
	}
	return nil
}

func (r *restoring) move(from, to, name string) error {
	if err := r.keep(to, name, os.Rename); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.Rename(from, to)
}
