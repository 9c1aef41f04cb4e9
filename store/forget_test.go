package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// word is something that was said; n makes it long enough for pages of its own.
func word(n int) string { return strings.Repeat("geheimnis-4711-", 1+n) }

// grep lists the files of a folder, and of those below it, that hold the word.
func grep(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("geheimnis")) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	want(t, err, nil)
	return found
}

// say has a device say and keep the word wherever words can be.
func say(t *testing.T, s *Store, device string) {
	t.Helper()
	ctx := t.Context()
	for i := range 300 {
		e := turnOf(device, device+"-c", i)
		e.Conversation.Title = word(0)
		e.Turn.Heard, e.Turn.Said, e.Turn.Spans = word(i%10), word(i*3), word(1)
		e.Messages[0].Body, e.Calls[0].Arguments, e.Calls[0].Result = word(i), word(1), word(2)
		s.Log.Put(e)
	}
	s.Log.Learned(device, "history", word(1000))
	flush(t, s)
	for i := range 50 {
		want(t, s.Reminders.Add(ctx, Reminder{ID: fmt.Sprint(device, i), DeviceID: device, Kind: "alert", State: "armed", DueAt: at(1), Text: word(i)}), nil)
	}
	parcel := Parcel{ID: device, Batch: device, DeviceID: device, Kind: "say", Body: word(2), Source: "say", State: "waiting", Answer: word(3), At: at(1)}
	failed, err := s.Outbox.Add(ctx, []Parcel{parcel}, OutboxBounds{9, 9})
	want(t, errors.Join(append(failed, err)...), nil)
	want(t, s.Memories.Write(ctx, MemoryChange{DeviceID: device, Agent: "a", Add: []Memory{{ID: device, Kind: FactMemory, Text: word(2), At: at(1)}}}), nil)
	want(t, s.Routines.Put(ctx, Routine{ID: device, Source: "voice", DeviceID: device, Body: word(2), State: word(1)}), nil)
	_, err = s.Devices.Edit(ctx, device, func(d *Device) error { d.Overrides = word(3); return nil })
	want(t, err, nil)
	_, err = s.db.now.ExecContext(ctx, "INSERT INTO recordings (turn_id, side, path, ms, bytes, ends_at) VALUES ($1, 'user', $2, 1, 1, 1)", device+"-c-000001", "a/"+device+".ogg")
	want(t, err, nil)
}

// TestForget: no byte of what was said to a device that is forgotten is left, nor is what had not been written.
func TestForget(t *testing.T) {
	for _, network := range []string{"", "nfs"} {
		t.Run("network "+network, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, Options{Path: filepath.Join(dir, "x.db"), hooks: hooks{filesystem: func(string) string { return network }}})
			addDevice(t, s, "m")
			addDevice(t, s, "n")
			s.Log.Put(turnOf("n", "n-c", 1))
			say(t, s, "m")
			if len(grep(t, dir)) == 0 {
				t.Fatal("nothing was written at all")
			}
			want(t, s.Audit.Add(t.Context(), Act{Who: "anna", Via: "token", Act: "device.pair", Object: "m", OK: true}), nil)
			late := turnOf("m", "m-c", 9999)
			late.Turn.Said = word(5)
			s.Log.Put(late)
			s.Log.Learned("m", "history", word(1))
			for range 20 { // pages move to and fro
				s.Log.Put(turnOf("n", "n-d", 1))
			}
			// A reader holds the log up for a while.
			rows, err := s.db.read.QueryContext(t.Context(), "SELECT id FROM turns")
			want(t, err, nil)
			rows.Next()
			time.AfterFunc(100*time.Millisecond, func() { rows.Close() })
			paths, err := s.Forget(t.Context(), "m")
			if err != nil || len(paths) != 1 || paths[0] != "a/m.ogg" {
				t.Errorf("%v %v", paths, err)
			}
			s.Log.Put(turnOf("m", "m-e", 1)) // that was still talking
			want(t, s.Scrub(t.Context(), "m"), nil)
			flush(t, s)
			if found := grep(t, dir); len(found) > 0 {
				t.Errorf("words are left in %v", found)
			}
			if acts, err := s.Audit.List(t.Context(), Page{}); err != nil || len(acts) != 1 || acts[0].Object != "" || acts[0].Act != "device.pair" {
				t.Errorf("%+v %v", acts, err)
			}
			if turns, err := s.Turns.List(t.Context(), "", Page{}); err != nil || len(turns) != 2 {
				t.Errorf("%d turns of the other device are left: %v", len(turns), err)
			}
			_, err = s.Forget(t.Context(), "m")
			want(t, err, nil)
		})
	}
}

// TestForgetPostgres: the rows go there too.
func TestForgetPostgres(t *testing.T) {
	s := open(t, Options{URL: postgresURL(t)})
	addDevice(t, s, "m")
	say(t, s, "m")
	if paths, err := s.Forget(t.Context(), "m"); err != nil || len(paths) != 1 {
		t.Errorf("%v %v", paths, err)
	}
	for _, table := range []string{"devices", "conversations", "turns", "messages", "tool_calls", "reminders", "recordings", "device_states", "outbox", "memories", "routines"} {
		if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM "+table); n != 0 || err != nil {
			t.Errorf("%s: %d %v", table, n, err)
		}
	}
}

// TestForgetWaits: while a long read holds up that the log is emptied, such as a backup, others go on writing.
func TestForgetWaits(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	addDevice(t, s, "m")
	addDevice(t, s, "n")
	reader, err := s.db.read.Conn(t.Context())
	want(t, err, nil)
	defer reader.Close()
	_, err = reader.ExecContext(t.Context(), "BEGIN")
	want(t, err, nil)
	var n int
	want(t, reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM devices").Scan(&n), nil)
	forgotten := make(chan error, 1)
	go func() {
		_, err := s.Forget(t.Context(), "m")
		forgotten <- err
	}()
	until(t, func() bool {
		_, err := s.Devices.Get(t.Context(), "m")
		return errors.Is(err, ErrNotFound)
	})
	for i := range 3 {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		want(t, s.Reminders.Add(ctx, Reminder{ID: fmt.Sprint(i), DeviceID: "n", Kind: "timer", State: "armed", DueAt: at(5)}), nil)
		stop()
	}
	select {
	case err := <-forgotten:
		t.Error("forgotten while the words are in the log:", err)
	default:
	}
	_, err = reader.ExecContext(t.Context(), "COMMIT")
	want(t, err, nil)
	want(t, <-forgotten, nil)
}

// TestRenew: after a backup in place of all others no copy has the words.
func TestRenew(t *testing.T) {
	dir := t.TempDir()
	s := openFile(t, filepath.Join(dir, "x.db"))
	b := &Backups{Store: s, Dir: filepath.Join(dir, "backups")}
	addDevice(t, s, "m")
	say(t, s, "m")
	want(t, s.db.copyTo(t.Context(), schemaBackup(b.Dir, 1, at(0))), nil)
	want(t, s.db.copyTo(t.Context(), filepath.Join(b.Dir, at(0).Format(backupName)+copyEnd)), nil) // the program was killed
	_, err := s.Forget(t.Context(), "m")
	want(t, err, nil)
	if found := grep(t, dir); len(found) != 2 {
		t.Errorf("%v", found)
	}
	want(t, b.Renew(t.Context()), nil)
	if found := grep(t, dir); len(found) > 0 {
		t.Errorf("words are left in %v", found)
	}
	if files, _ := filepath.Glob(filepath.Join(b.Dir, "*")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}
