package spoken

import "time"

// At returns the instant at which the clocks of zone show the date and time of wall,
// whose own zone does not count. A time that daylight saving skips is as much later as
// it would have been had the clock not been changed: 02:30 is then 03:30. Of a time
// that comes twice the first is meant. Both are as RFC 5545 has it.
func At(wall time.Time, zone *time.Location) time.Time {
	shown := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC)
	offset := func(t time.Time) time.Duration {
		_, seconds := t.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(shown.Add(-24*time.Hour)), offset(shown.Add(24*time.Hour))
	early, late := shown.Add(-before), shown.Add(-after)
	if offset(early) != before && offset(late) == after {
		return late.In(zone)
	}
	return early.In(zone)
}

// Wall returns what the clocks of its zone show at t, as a time in UTC.
func Wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
