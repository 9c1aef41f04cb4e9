package alarm

import (
	"testing"
	"time"
)

// TestNext walks every state and every event. A dash: nothing happens.
func TestNext(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 1, 0, time.UTC)
	events := []Event{Came, Absent, Heard, Lost, Restarted, Met, Snooze, Delete}
	for _, test := range []struct {
		state State
		rang  bool // telling it was begun before
		rule  string
		want  [8]State
	}{
		//                                Came     Absent  Heard  Lost    Restarted Met    Snooze   Delete
		{Armed, false, "", [8]State{Ringing, Missed, "-", "-", "-", "-", Snoozed, Deleted}},
		{Snoozed, false, "", [8]State{Ringing, Missed, "-", "-", "-", "-", Snoozed, Deleted}},
		{Ringing, true, "", [8]State{"-", "-", Told, Missed, Missed, "-", Snoozed, Deleted}},
		{Ringing, true, "FREQ=DAILY", [8]State{"-", "-", Armed, Missed, Missed, "-", Snoozed, Deleted}},
		{Missed, false, "", [8]State{"-", "-", "-", "-", "-", Ringing, Snoozed, Deleted}},
		{Missed, true, "", [8]State{"-", "-", "-", "-", "-", Told, Snoozed, Deleted}},
		{Missed, true, "FREQ=DAILY", [8]State{"-", "-", "-", "-", "-", Armed, Snoozed, Deleted}},
		{Told, true, "", [8]State{"-", "-", "-", "-", "-", "-", Snoozed, "-"}},
		{Deleted, true, "", [8]State{"-", "-", "-", "-", "-", "-", "-", "-"}},
	} {
		r := Reminder{State: test.state, Rule: test.rule, Zone: "UTC", Wall: "2026-11-21T07:00:00", Due: now.Add(-time.Second)}
		if test.rang {
			r.Rang = r.Due
		}
		for i, e := range events {
			next, ok := r.Next(e, now)
			got := next.State
			if !ok {
				got = "-"
			}
			if got != test.want[i] {
				t.Errorf("%s, rang %v, %q: event %d gives %s, want %s", test.state, test.rang, test.rule, e, got, test.want[i])
			}
			switch {
			case !ok && next != r:
				t.Errorf("%s: event %d is none, and changes %+v", test.state, e, next)
			case got == Ringing && !next.Rang.Equal(now):
				t.Errorf("%s: rang at %v", test.state, next.Rang)
			case got == Missed && next.Rang.IsZero() != (e != Restarted):
				t.Errorf("%s: event %d leaves rang at %v", test.state, e, next.Rang)
			case got == Armed && (next.Wall != "2026-11-22T07:00:00" || !next.Due.Equal(r.Due.Truncate(time.Minute).Add(24*time.Hour))):
				t.Errorf("%s: next %+v", test.state, next)
			}
		}
	}
}

// TestClockSetBackWhileRinging: what recurs comes the next day, and not once more today.
func TestClockSetBackWhileRinging(t *testing.T) {
	due := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	r := Reminder{State: Ringing, Rule: "FREQ=DAILY", Zone: "UTC", Wall: "2026-11-21T07:00:00", Due: due, Rang: due}
	if next, _ := r.Next(Heard, due.Add(-10*time.Minute)); !next.Due.Equal(due.AddDate(0, 0, 1)) {
		t.Errorf("it comes again at %v", next.Due)
	}
}

// TestTellsTwiceAtMost: whatever the program's ends, a reminder is told at most twice,
// and one that nobody can have heard is told until it is heard.
func TestTellsTwiceAtMost(t *testing.T) {
	now := time.Now()
	r, tellings := Reminder{State: Armed, Due: now}, 0
	step := func(e Event) {
		next, ok := r.Next(e, now)
		if !ok {
			return
		}
		if (e == Came || e == Met) && (next.State == Ringing || next.State == Told) {
			tellings++
		}
		r = next
	}
	step(Came)
	for range 5 {
		step(Restarted)
		step(Met)
	}
	if tellings != 2 || r.State != Told {
		t.Errorf("told %d times, and is %s", tellings, r.State)
	}
	r, tellings = Reminder{State: Armed, Due: now}, 0
	step(Came)
	for range 5 {
		step(Lost)
		step(Met)
	}
	if tellings != 6 || r.State != Ringing {
		t.Errorf("told %d times, and is %s", tellings, r.State)
	}
}
