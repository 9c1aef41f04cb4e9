package store

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestReminders(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		r := Reminder{
			ID: "r1", DeviceID: "m", DueAt: at(10), Rule: "FREQ=DAILY", Start: "2026-11-22T17:10:00", Zone: "Asia/Shanghai", Text: "遛狗", Language: "zh",
			Kind: "reminder", Length: 5 * time.Minute, State: ReminderWaiting, MadeAt: at(0), MadeTurn: "t",
		}
		want(t, s.Reminders.Add(ctx, r), nil)
		if got, err := s.Reminders.Get(ctx, "r1"); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v %v", got, err)
		}
		want(t, s.Reminders.Add(ctx, r), ErrExists)
		lost := r
		lost.ID, lost.DeviceID = "r2", "nobody"
		want(t, s.Reminders.Add(ctx, lost), ErrNotFound)
		if due, err := s.Reminders.Due(ctx, at(9), 10); err != nil || len(due) != 0 {
			t.Error(due, err)
		}
		if due, err := s.Reminders.Due(ctx, at(10), 10); err != nil || len(due) != 1 {
			t.Error(due, err)
		}
		next := r
		next.DueAt, next.RangAt = at(20), at(10)
		want(t, s.Reminders.Replace(ctx, r, next), nil)
		want(t, s.Reminders.Replace(ctx, r, next), ErrConflict)
		if got, err := s.Reminders.Next(ctx); err != nil || !got.DueAt.Equal(at(20)) {
			t.Errorf("%+v %v", got, err)
		}
		done := next
		done.State = ReminderDone
		want(t, s.Reminders.Replace(ctx, next, done), nil)
		if open, err := s.Reminders.Open(ctx, "m"); err != nil || len(open) != 0 {
			t.Error(open, err)
		}
		if n, err := s.Reminders.Trim(ctx, at(30)); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

// TestReminderOnce: of many who ring one reminder, one does.
func TestReminderOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		addDevice(t, s, "m")
		r := Reminder{ID: "r", DeviceID: "m", DueAt: at(1), Zone: "UTC", Kind: "timer", State: ReminderWaiting, MadeAt: at(0)}
		want(t, s.Reminders.Add(t.Context(), r), nil)
		var rang atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				n := r
				n.State = ReminderRinging
				if s.Reminders.Replace(t.Context(), r, n) == nil {
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

// TestManyReminders: what is due first is found among ten thousand.
func TestManyReminders(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		tx, err := s.db.now.BeginTx(ctx, nil)
		want(t, err, nil)
		for i := range 10_000 {
			r := Reminder{ID: fmt.Sprintf("r%05d", i), DeviceID: "m", DueAt: at(0).Add(time.Duration(i*7919%10_000) * time.Second), Zone: "UTC", Kind: "reminder", State: ReminderWaiting, MadeAt: at(0)}
			if _, err := execIn(ctx, tx, insert("reminders", reminderColumns), r.fields()...); err != nil {
				t.Fatal(err)
			}
		}
		want(t, tx.Commit(), nil)
		start := time.Now()
		r, err := s.Reminders.Next(ctx)
		if err != nil || !r.DueAt.Equal(at(0)) {
			t.Errorf("%+v %v", r, err)
		}
		due, err := s.Reminders.Due(ctx, at(10), 1000)
		if err != nil || len(due) != 601 {
			t.Errorf("%d are due: %v", len(due), err)
		}
		t.Logf("next and %d due in %v", len(due), time.Since(start))
	})
}
