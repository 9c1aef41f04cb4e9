// Package storetest holds what every store of reminders must do.
package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/internal/text"
)

// Run tests a store. Each call of open gives an empty one, in which the devices kitchen,
// hall and many are known.
func Run(t *testing.T, open func(t *testing.T) alarm.Store) {
	for name, test := range map[string]func(*testing.T, alarm.Store){
		"keeps":   keeps,
		"finds":   finds,
		"changes": changes,
		"batches": batches,
		"races":   races,
		"shifts":  shifts,
		"purges":  purges,
		"forgets": forgets,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func add(t *testing.T, s alarm.Store, all ...alarm.Reminder) {
	t.Helper()
	for _, r := range all {
		if err := s.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func find(t *testing.T, s alarm.Store, q alarm.Query) (ids []string) {
	t.Helper()
	all, err := s.Find(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		ids = append(ids, r.ID)
	}
	return ids
}

// keeps: what was added is found with all its fields.
func keeps(t *testing.T, s alarm.Store) {
	want := []alarm.Reminder{
		{
			ID: "a", Device: "kitchen", Kind: alarm.Alert, State: alarm.Armed, Text: "Größe 'quoted' 🔔", Lang: text.Chinese, Due: noon.Add(1234 * time.Millisecond),
			Wall: "2026-11-21T12:00:01", Zone: "Europe/Berlin", Rule: "FREQ=DAILY",
		},
		{
			ID: "b", Device: "kitchen", Kind: alarm.Timer, State: alarm.Ringing, Lang: text.English, Due: noon.Add(time.Hour),
			Length: 90 * time.Minute, Rang: noon.Add(time.Hour + time.Second),
		},
	}
	add(t, s, want...)
	got, err := s.Find(t.Context(), alarm.Query{Device: "kitchen"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, want, func(a, b alarm.Reminder) bool {
		same := a.Due.Equal(b.Due) && a.Rang.Equal(b.Rang) && a.Rang.IsZero() == b.Rang.IsZero()
		a.Due, a.Rang = b.Due, b.Rang
		return same && a == b
	}) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func finds(t *testing.T, s alarm.Store) {
	add(
		t, s,
		alarm.Reminder{ID: "c", Device: "kitchen", Kind: alarm.Timer, State: alarm.Armed, Due: noon.Add(3 * time.Minute)},
		alarm.Reminder{ID: "a", Device: "hall", Kind: alarm.Timer, State: alarm.Snoozed, Due: noon.Add(time.Minute)},
		alarm.Reminder{ID: "b", Device: "kitchen", Kind: alarm.Timer, State: alarm.Missed, Due: noon.Add(2 * time.Minute)},
		alarm.Reminder{ID: "d", Device: "hall", Kind: alarm.Timer, State: alarm.Told, Due: noon.Add(4 * time.Minute)},
	)
	waiting := []alarm.State{alarm.Armed, alarm.Snoozed}
	for _, test := range []struct {
		query alarm.Query
		want  string
	}{
		{alarm.Query{}, "[a b c d]"},
		{alarm.Query{Device: "kitchen"}, "[b c]"},
		{alarm.Query{Device: "nobody"}, "[]"},
		{alarm.Query{States: waiting}, "[a c]"},
		{alarm.Query{States: waiting, Before: noon.Add(time.Minute)}, "[a]"},
		{alarm.Query{States: waiting, Before: noon.Add(time.Minute - time.Millisecond)}, "[]"},
		{alarm.Query{States: waiting, Most: 1}, "[a]"},
		{alarm.Query{Device: "kitchen", States: []alarm.State{alarm.Missed}}, "[b]"},
		{alarm.Query{Most: 3}, "[a b c]"},
	} {
		if got := fmt.Sprint(find(t, s, test.query)); got != test.want {
			t.Errorf("%+v: %s, want %s", test.query, got, test.want)
		}
	}
}

// change makes one change, and checks whether it was made.
func change(t *testing.T, s alarm.Store, want bool, was, now alarm.Reminder) {
	t.Helper()
	done, err := s.Change(t.Context(), alarm.Change{Was: was, Now: now})
	if err != nil || len(done) != 1 || done[0] != want {
		t.Errorf("%s of %v to %s: %v, %v, want %v", was.State, was.Due, now.State, done, err, want)
	}
}

// batches: of many changes those are made that can be.
func batches(t *testing.T, s alarm.Store) {
	var all []alarm.Change
	for i := range 100 {
		was := alarm.Reminder{ID: fmt.Sprintf("%03d", i), Device: "many", Kind: alarm.Timer, State: alarm.Armed, Due: noon}
		add(t, s, was)
		now := was
		now.State = alarm.Missed
		if i%10 == 0 {
			was.State = alarm.Snoozed // it is not
		}
		all = append(all, alarm.Change{Was: was, Now: now})
	}
	done, err := s.Change(t.Context(), all...)
	if err != nil || len(done) != len(all) {
		t.Fatalf("%v, %v", done, err)
	}
	for i, ok := range done {
		if ok != (i%10 != 0) {
			t.Errorf("change %d: %v", i, ok)
		}
	}
	if n := len(find(t, s, alarm.Query{States: []alarm.State{alarm.Missed}})); n != 90 {
		t.Errorf("%d are missed", n)
	}
}

// changes: only what is as it was thought to be is changed.
func changes(t *testing.T, s alarm.Store) {
	was := alarm.Reminder{ID: "a", Device: "kitchen", Kind: alarm.Alert, State: alarm.Armed, Due: noon, Rule: "FREQ=DAILY", Zone: "UTC", Wall: "2026-11-21T12:00:00"}
	add(t, s, was)
	next := was
	next.State, next.Rang = alarm.Ringing, noon.Add(time.Second)
	change(t, s, true, was, next)
	change(t, s, false, was, next) // it has another state
	other := next
	other.Due = noon.Add(time.Millisecond)
	change(t, s, false, other, was) // it has another time
	unknown := was
	unknown.ID = "b"
	change(t, s, false, unknown, next)
	again := next
	again.State, again.Due, again.Wall, again.Rang = alarm.Armed, noon.Add(24*time.Hour), "2026-11-22T12:00:00", time.Time{}
	change(t, s, true, next, again)
	got, err := s.Find(t.Context(), alarm.Query{})
	if err != nil || len(got) != 1 || !got[0].Due.Equal(again.Due) || got[0].State != alarm.Armed || got[0].Wall != again.Wall || !got[0].Rang.IsZero() || got[0].Rule != was.Rule {
		t.Errorf("%+v, %v", got, err)
	}
}

// races: of many who change the same, one does.
func races(t *testing.T, s alarm.Store) {
	was := alarm.Reminder{ID: "a", Device: "kitchen", Kind: alarm.Timer, State: alarm.Armed, Due: noon}
	add(t, s, was)
	var wg sync.WaitGroup
	won := make(chan bool, 16)
	for range 16 {
		wg.Go(func() {
			next := was
			next.State = alarm.Ringing
			switch done, err := s.Change(t.Context(), alarm.Change{Was: was, Now: next}); {
			case err != nil:
				t.Error(err)
			case done[0]:
				won <- true
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d have changed it", len(won))
	}
}

// shifts: the timers that wait are moved, and nothing else.
func shifts(t *testing.T, s alarm.Store) {
	add(
		t, s,
		alarm.Reminder{ID: "timer", Device: "kitchen", Kind: alarm.Timer, State: alarm.Armed, Due: noon},
		alarm.Reminder{ID: "snoozed", Device: "hall", Kind: alarm.Timer, State: alarm.Snoozed, Due: noon},
		alarm.Reminder{ID: "alert", Device: "kitchen", Kind: alarm.Alert, State: alarm.Armed, Due: noon},
		alarm.Reminder{ID: "missed", Device: "kitchen", Kind: alarm.Timer, State: alarm.Missed, Due: noon},
	)
	if err := s.Shift(t.Context(), -90*time.Minute); err != nil {
		t.Fatal(err)
	}
	all, err := s.Find(t.Context(), alarm.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		want := noon
		if r.ID == "timer" || r.ID == "snoozed" {
			want = noon.Add(-90 * time.Minute)
		}
		if !r.Due.Equal(want) {
			t.Errorf("%s is due at %v, want %v", r.ID, r.Due, want)
		}
	}
}

func purges(t *testing.T, s alarm.Store) {
	for i, state := range []alarm.State{alarm.Armed, alarm.Snoozed, alarm.Ringing, alarm.Missed, alarm.Told, alarm.Deleted} {
		add(t, s, alarm.Reminder{ID: fmt.Sprint(i), Device: "kitchen", Kind: alarm.Timer, State: state, Due: noon.Add(-time.Second)})
	}
	add(t, s, alarm.Reminder{ID: "6", Device: "kitchen", Kind: alarm.Timer, State: alarm.Told, Due: noon})
	add(t, s, alarm.Reminder{ID: "7", Device: "kitchen", Kind: alarm.Timer, State: alarm.Told, Due: noon.Add(-time.Second), Rang: noon.Add(time.Hour)})
	if err := s.Purge(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(find(t, s, alarm.Query{})); got != "[0 1 2 3 7 6]" {
		t.Errorf("left: %s", got)
	}
}

// forgets: of a device nothing is left, and of others all.
func forgets(t *testing.T, s alarm.Store) {
	for i, device := range []string{"kitchen", "hall", "kitchen"} {
		add(t, s, alarm.Reminder{ID: fmt.Sprint(i), Device: device, Kind: alarm.Timer, State: alarm.Armed, Due: noon})
	}
	for range 2 {
		if err := s.Forget(t.Context(), "kitchen"); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(find(t, s, alarm.Query{}), find(t, s, alarm.Query{Device: "kitchen"})); got != "[1] []" {
		t.Errorf("left: %s", got)
	}
}
