package store

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
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

// TestOutbox: both engines keep parcels until they are over.
func TestOutbox(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, now := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
		addDevice(t, s, "m")
		for i, p := range []Parcel{
			{ID: "a", EndsAt: now.Add(time.Hour)}, {ID: "b", EndsAt: now.Add(-time.Hour)}, {ID: "c", EndsAt: now.Add(time.Hour), NotBefore: now.Add(time.Minute)},
		} {
			p.DeviceID, p.Body, p.Source, p.State, p.At = "m", `{}`, "api", "waiting", now.Add(time.Duration(i-10)*time.Hour)
			want(t, s.Outbox.Add(ctx, p), nil)
		}
		want(t, s.Outbox.Add(ctx, Parcel{ID: "x", DeviceID: "nobody", Body: "{}", Source: "api", State: "waiting"}), ErrNotFound)
		waiting, err := s.Outbox.Waiting(ctx, "m", 9)
		if n, e := s.Outbox.Open(ctx, "m"); len(waiting) != 1 || waiting[0].ID != "a" || err != nil || n != 2 || e != nil {
			t.Errorf("%+v %v, %d open %v", waiting, err, n, e)
		}
		told := waiting[0]
		told.State, told.Tries, told.DeliveredAt, told.HeardChars = "telling", 1, now, 7
		want(t, s.Outbox.Change(ctx, waiting[0], told), nil)
		want(t, s.Outbox.Change(ctx, waiting[0], told), ErrConflict)
		if p, err := s.Outbox.Get(ctx, "a"); fmt.Sprint(p) != fmt.Sprint(told) || err != nil {
			t.Errorf("%+v %v, want %+v", p, err, told)
		}
		if n, err := s.Outbox.Expire(ctx); n != 1 || err != nil {
			t.Errorf("%d expired, %v", n, err)
		}
		if n, err := s.Outbox.Purge(ctx, now.Add(-9*time.Hour-time.Minute)); n != 1 || err != nil {
			t.Errorf("%d deleted, %v", n, err)
		}
		if all, err := s.Outbox.List(ctx, "m", Page{}); len(all) != 2 || all[0].ID != "c" || err != nil {
			t.Errorf("%+v %v", all, err)
		}
	})
}
