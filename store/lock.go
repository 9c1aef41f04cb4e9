package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

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
