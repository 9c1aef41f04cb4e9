package store

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// TestRecordings: only turns that are there get recordings, the oldest turns come first, and a shorter time counts for
// what is there already.
func TestRecordings(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := context.Background()
		addDevice(t, s, "d")
		var rows []Recording
		for i := range 4 {
			id, talk := fmt.Sprintf("turn-%d", i), fmt.Sprintf("talk-%d", i/2)
			s.Log.Put(&Entry{
				Conversation: Conversation{ID: talk, DeviceID: "d", BeganAt: at(i / 2)},
				Turn:         Turn{ID: id, Seq: i, At: at(i), Kind: "user", Cause: "done"},
			})
			rows = append(rows, Recording{TurnID: id, Side: "user", Path: "d/" + id, Length: 1500 * time.Millisecond, Bytes: 3 << 30, EndsAt: at(i).AddDate(0, 0, 30)})
		}
		want(t, s.Log.Flush(ctx), nil)
		rows = append(rows, Recording{TurnID: "nobody", Side: "reply", Path: "x", EndsAt: at(0)})
		rows[2], rows[0] = rows[0], rows[2]
		kept, err := s.Recordings.Put(ctx, rows)
		if err != nil || !reflect.DeepEqual(kept, []bool{true, true, true, true, false}) {
			t.Fatalf("%v %v", kept, err)
		}
		rows[2], rows[0] = rows[0], rows[2]
		rows = rows[:4]
		rows[1].Bytes = 7
		if kept, err = s.Recordings.Put(ctx, rows[1:2]); err != nil || !kept[0] {
			t.Errorf("once more: %v %v", kept, err)
		}
		if got, err := s.Recordings.Oldest(ctx, 3); err != nil || !reflect.DeepEqual(got, rows[:3]) {
			t.Errorf("%+v %v", got, err)
		}
		if n, err := s.Recordings.Bytes(ctx); err != nil || int64(n) != 3*(3<<30)+7 {
			t.Errorf("%d %v", n, err)
		}
		if got, err := s.Recordings.OfConversation(ctx, "talk-1"); err != nil || len(got) != 2 {
			t.Errorf("%+v %v", got, err)
		}
		want(t, s.Recordings.Shorten(ctx, 7*24*time.Hour), nil)
		want(t, s.Recordings.Shorten(ctx, 60*24*time.Hour), nil)
		for i, r := range rows {
			if got, err := s.Recordings.Of(ctx, r.TurnID); err != nil || len(got) != 1 || !got[0].EndsAt.Equal(at(i).AddDate(0, 0, 7)) {
				t.Errorf("%+v %v", got, err)
			}
		}
		want(t, s.Recordings.DeleteAll(ctx, append(rows[:1:1], Recording{TurnID: "nobody", Side: "user"})), nil)
		want(t, s.Conversations.Delete(ctx, "talk-1"), nil)
		if got, err := s.Recordings.Oldest(ctx, 9); err != nil || len(got) != 1 || got[0].TurnID != "turn-1" {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// TestDaysOfADevice: recordings of a device that has days of its own end by them, in place of those of all.
func TestDaysOfADevice(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		days := func(id string, n *int) {
			_, err := s.Devices.Edit(ctx, id, func(d *Device) error { d.KeepSound = n; return nil })
			want(t, err, nil)
		}
		three, ever, one := 3, 0, 1
		for id, n := range map[string]*int{"m": nil, "less": &three, "ever": &ever, "more": nil} {
			addDevice(t, s, id)
			days(id, n)
			s.Log.Put(&Entry{Conversation: Conversation{ID: "c" + id, DeviceID: id, BeganAt: at(0)}, Turn: Turn{ID: id, Seq: 1, At: at(0), Kind: "user", Cause: "done"}})
		}
		flush(t, s)
		for _, id := range []string{"m", "less", "ever", "more"} {
			kept, err := s.Recordings.Put(ctx, []Recording{{TurnID: id, Side: "user", Path: id, EndsAt: at(0).AddDate(0, 0, 30)}})
			if err != nil || !kept[0] {
				t.Fatal(kept, err)
			}
		}
		check := func(want map[string]int) {
			t.Helper()
			for id, days := range want {
				if got, err := s.Recordings.Of(ctx, id); err != nil || len(got) != 1 || !got[0].EndsAt.Equal(at(0).Add(time.Duration(days)*24*time.Hour)) {
					t.Errorf("%s: %+v %v, want %d days", id, got, err, days)
				}
			}
		}
		check(map[string]int{"m": 30, "less": 3, "ever": 36500, "more": 30})
		days("more", &one)
		want(t, s.Recordings.Shorten(ctx, 7*24*time.Hour), nil)
		check(map[string]int{"m": 7, "less": 3, "ever": 36500, "more": 1})
	})
}
