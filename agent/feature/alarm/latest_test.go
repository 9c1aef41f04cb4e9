package alarm

import (
	"testing"
	"time"
)

// TestLatest: of many times that were missed the last one counts.
func TestLatest(t *testing.T) {
	due := time.Date(2026, 11, 18, 7, 0, 0, 0, time.UTC)
	r := Reminder{State: Missed, Rule: "FREQ=DAILY", Zone: "UTC", Wall: "2026-11-18T07:00:00", Due: due}
	last, times := r.latest(due.Add(3*24*time.Hour + time.Hour))
	if times != 4 || !last.Due.Equal(due.Add(3*24*time.Hour)) || last.Wall != "2026-11-21T07:00:00" {
		t.Errorf("%d times, the last %+v", times, last)
	}
	r.State, r.Due = Snoozed, due.Add(-time.Hour)
	if last, times := r.latest(due.Add(24 * time.Hour)); times != 1 || !last.Due.Equal(r.Due) {
		t.Errorf("one that was put off: %d times, %+v", times, last)
	}
}

func zoneOf(tb testing.TB, name string) *time.Location {
	tb.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return zone
}
