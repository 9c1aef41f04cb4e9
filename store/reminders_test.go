package store

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"xiaozhi/internal/testall"
)

func TestReminders(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		r := Reminder{
			ID: "r1", DeviceID: "m", Kind: "alert", State: "armed", Text: "遛狗", Language: "zh", DueAt: at(10), Length: 5 * time.Minute,
			Wall: "2026-11-22T17:10:00", Zone: "Asia/Shanghai", Rule: "FREQ=DAILY", RangAt: at(1), MadeAt: at(0),
		}
		want(t, s.Reminders.Add(ctx, r), nil)
		if got, err := s.Reminders.Find(ctx, ReminderQuery{DeviceID: "m"}); err != nil || !reflect.DeepEqual(got, []Reminder{r}) {
			t.Errorf("%+v %v", got, err)
		}
		want(t, s.Reminders.Add(ctx, r), ErrExists)
		lost := r
		lost.ID, lost.DeviceID = "r2", "nobody"
		want(t, s.Reminders.Add(ctx, lost), ErrNotFound)
		next := r
		next.DueAt, next.RangAt = at(20), at(10)
		want(t, s.Reminders.Change(ctx, r, next), nil)
		want(t, s.Reminders.Change(ctx, r, next), ErrConflict)
		timer := Reminder{ID: "t", DeviceID: "m", Kind: "timer", State: "snoozed", DueAt: at(5)}
		want(t, s.Reminders.Add(ctx, timer), nil)
		want(t, s.Reminders.Shift(ctx, time.Minute), nil)
		for _, test := range []struct {
			q    ReminderQuery
			want string
		}{
			{ReminderQuery{}, "t@6 r1@20 "},
			{ReminderQuery{States: []string{"armed", "snoozed"}, Before: at(6), DeviceID: "m"}, "t@6 "},
			{ReminderQuery{Before: at(6).Add(-time.Millisecond)}, ""},
			{ReminderQuery{States: []string{"missed"}}, ""},
			{ReminderQuery{DeviceID: "nobody"}, ""},
			{ReminderQuery{Limit: 1}, "t@6 "},
		} {
			all, err := s.Reminders.Find(ctx, test.q)
			got := ""
			for _, r := range all {
				got += fmt.Sprintf("%s@%d ", r.ID, r.DueAt.Minute())
			}
			if got != test.want || err != nil {
				t.Errorf("%+v: %q %v, want %q", test.q, got, err, test.want)
			}
		}
		told := next
		told.State = "told"
		want(t, s.Reminders.Change(ctx, next, told), nil)
		want(t, s.Reminders.Purge(ctx, at(20)), nil) // it was due then, not before
		want(t, s.Reminders.Purge(ctx, at(21)), nil)
		if all, err := s.Reminders.Find(ctx, ReminderQuery{}); err != nil || len(all) != 1 || all[0].ID != "t" {
			t.Errorf("%+v %v", all, err)
		}
	})
}

// TestReminderOnce: of many who ring one reminder, one does.
func TestReminderOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		r := Reminder{ID: "r", DeviceID: "m", Kind: "timer", State: "armed", DueAt: at(1)}
		want(t, s.Reminders.Add(t.Context(), r), nil)
		var rang atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				n := r
				n.State = "ringing"
				if s.Reminders.Change(t.Context(), r, n) == nil {
					rang.Add(1)
				}
			})
		}
		wg.Wait()
		if rang.Load() != 1 {
			t.Errorf("it rang %d times", rang.Load())
		}
	})
}

// TestManyReminders: what is due first is found among a thousand, with TEST_ALL among ten thousand.
func TestManyReminders(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		tx, err := s.db.now.BeginTx(ctx, nil)
		want(t, err, nil)
		many := testall.Pick(10_000, 1_000)
		for i := range many {
			r := Reminder{ID: fmt.Sprintf("r%05d", i), DeviceID: "m", DueAt: at(0).Add(time.Duration(i*7919%many) * time.Second), Kind: "alert", State: "armed", MadeAt: at(0)}
			if _, err := execIn(ctx, tx, insert("reminders", reminderColumns), r.fields()...); err != nil {
				t.Fatal(err)
			}
		}
		want(t, tx.Commit(), nil)
		start := time.Now()
		due, err := s.Reminders.Find(ctx, ReminderQuery{States: []string{"armed", "snoozed"}, Before: at(10), Limit: 1000})
		if err != nil || len(due) != 601 || !due[0].DueAt.Equal(at(0)) {
			t.Errorf("%d are due: %v", len(due), err)
		}
		t.Logf("%d due in %v", len(due), time.Since(start))
	})
}

// TestOutboxAdopts: what an earlier program has left is taken over, and what it was telling is over.
func TestOutboxAdopts(t *testing.T) {
	test := func(t *testing.T, o Options) {
		before, files := o, fstest.MapFS{}
		for name, file := range allOf(t) {
			if name < "00007" {
				files[name] = file
			}
		}
		before.hooks.migrations = files
		s, err := Open(t.Context(), before)
		want(t, err, nil)
		addDevice(t, s, "m")
		for i, state := range []string{"waiting", "telling", "heard", "cancelled"} {
			_, err := s.db.exec(t.Context(), "INSERT INTO outbox (id, device_id, body, source, ends_at, state, tries, at) VALUES ($1, 'm', '{}', 'api', $2, $3, 1, $4)",
				state, time.Now().Add(time.Hour).UnixMilli(), state, at(i).UnixMilli())
			want(t, err, nil)
		}
		want(t, s.Close(), nil)
		if s, err = Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all, err := s.Outbox.List(t.Context(), ParcelQuery{})
		var got []string
		for _, p := range all {
			got = append(got, fmt.Sprint(p.ID, " ", p.Batch, " ", p.Kind, " ", p.State, " ", p.Reason, " ", p.DueAt.Equal(p.At)))
		}
		if got := strings.Join(got, ", "); err != nil || got != "cancelled cancelled say cancelled withdrawn true, heard heard say heard  true, "+
			"telling telling say cancelled lost true, waiting waiting say waiting  true" {
			t.Error(got, err)
		}
	}
	t.Run("sqlite", func(t *testing.T) { test(t, Options{Path: filepath.Join(t.TempDir(), "x.db")}) })
	t.Run("postgres", func(t *testing.T) { test(t, Options{URL: postgresURL(t)}) })
}

// allOf returns the migrations of the program.
func allOf(t *testing.T) fstest.MapFS {
	files, _ := nextSchema(t)
	delete(files, "99999_next.sql")
	return files
}

// TestRoutines: a routine is kept in place of what it was, and goes with its device.
func TestRoutines(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		want(t, s.Routines.Put(ctx, Routine{ID: "a", Source: "voice", DeviceID: "n", Body: "{}", State: "{}"}), ErrNotFound)
		first := Routine{ID: "a", Source: "voice", DeviceID: "m", Body: "{}", State: "{}", At: at(1)}
		now := Routine{ID: "a", Source: "voice", DeviceID: "m", Body: `{"to":"m"}`, State: `{"runs":1}`, Hash: "h", ByID: "1", ByName: "ann", At: at(1)}
		for _, r := range []Routine{first, now, {ID: "b", Source: "file", Body: "{}", State: "{}", At: at(2)}, {ID: "c", Source: "api", Body: "{}", State: "{}", At: at(3)}} {
			want(t, s.Routines.Put(ctx, r), nil)
		}
		want(t, s.Routines.Delete(ctx, "c"), nil)
		want(t, s.Routines.Delete(ctx, "c"), nil)
		all, err := s.Routines.List(ctx)
		if err != nil || len(all) != 2 || all[0] != now || all[1].ID != "b" {
			t.Errorf("%+v %v", all, err)
		}
		_, err = s.Forget(ctx, "m")
		want(t, err, nil)
		if all, err := s.Routines.List(ctx); err != nil || len(all) != 1 || all[0].ID != "b" {
			t.Errorf("%+v %v", all, err)
		}
	})
}
