package store

import (
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// onBoth runs a test on each engine, with an empty database.
func onBoth(t *testing.T, f func(t *testing.T, s *Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { f(t, openFile(t, filepath.Join(t.TempDir(), "x.db"))) })
	t.Run("postgres", func(t *testing.T) { f(t, open(t, Options{URL: postgresURL(t)})) })
}

func open(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return s
}

func openFile(t *testing.T, path string) *Store {
	t.Helper()
	return open(t, Options{Path: path})
}

// addDevice adds a paired device.
func addDevice(t *testing.T, s *Store, id string) {
	t.Helper()
	d := Identity{ID: id, Address: id, Client: "c-" + id, State: DevicePaired, FirstAt: at(0)}
	if err := s.Devices.Commit(t.Context(), DeviceChange{Save: []Identity{d}}); err != nil {
		t.Fatal(err)
	}
}

// want fails the test unless err is the expected one.
func want(t *testing.T, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) || (expected == nil) != (err == nil) {
		t.Errorf("error %v, want %v", err, expected)
	}
}

func at(minute int) time.Time { return time.Date(2026, 11, 22, 9, minute, 0, 0, time.UTC) }

// TestSchemaNewest: the number that `xiaozhi version --json` names is that of a database that this program has made.
func TestSchemaNewest(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "xiaozhi.db"))
	n, err := count(t.Context(), s.db.read, "SELECT MAX(version_id) FROM goose_db_version")
	if got := Schema(); err != nil || got != int64(n) {
		t.Errorf("schema %d, but a new database has %d, %v", got, n, err)
	}
}
