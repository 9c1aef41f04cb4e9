package spoken

import (
	"strings"
	"time"
)

// Reset reads the time to which something that is due at due is moved: 七点半, tomorrow, friday at noon. What the
// words leave out stays as it is: a time without a day is of the same day, a day without a time has the same time,
// and 7 without morning or evening is the one that is nearer to due. A length of time is counted from now. named says that a day was
// named. The errors are those of [Time].
func Reset(words string, due, now time.Time) (at time.Time, named bool, err error) {
	due = due.In(now.Location())
	words = strings.TrimSpace(words)
	if _, ok := written(words, now.Location()); ok {
		at, err = Time(words, now)
		return at, true, err
	}
	d, k, ok := dayAndClock(bare(fold(words)), now)
	if !ok || d.later || !d.known && !k.known && k.part == wholeDay {
		at, err = Time(words, now)
		return at, d.known, err
	}
	if d.absent {
		return time.Time{}, true, ErrNoDate
	}
	date := due
	if d.known {
		date = d.date
	}
	on := func(add, hour int) time.Time {
		return At(time.Date(date.Year(), date.Month(), date.Day()+add, hour, k.minute, k.second, 0, time.UTC), now.Location())
	}
	switch {
	case k.known:
	case k.part != wholeDay:
		k.hour = k.usual
	default:
		k.hour, k.minute, k.second = due.Clock()
		k.exact = true
	}
	hour, err := k.hour24()
	if err != nil {
		return time.Time{}, d.known, err
	}
	at = on(0, hour)
	if k.part == wholeDay && !k.exact && k.hour >= 1 && k.hour <= 12 { // morning or evening is left out
		other := on(0, (hour+12)%24)
		was := time.Duration(due.Hour()*60+due.Minute()) * time.Minute
		far := func(t time.Time) time.Duration {
			return (time.Duration(t.Hour()*60+t.Minute())*time.Minute - was).Abs()
		}
		if far(other) < far(at) && other.After(now) || !at.After(now) && other.After(now) {
			at = other
		}
	}
	if !at.After(now) && !d.known {
		at, err = Time(words, now)
		return at, false, err
	}
	switch {
	case !at.After(now):
		return time.Time{}, true, ErrPast
	case at.Sub(now) > MaxDuration:
		return time.Time{}, true, ErrTooLong
	}
	return at, d.known, nil
}

// dayAndClock reads a day and a time of day, in either order. It is false for other words.
func dayAndClock(folded string, now time.Time) (d day, k clock, ok bool) {
	c := &cursor{folded}
	for {
		c.skip(" ", ",", "to ", "at ", "on ", "by ", "for ", "the ", "of ", "about ", "在", "的", "到", "于", "左右")
		if c.rest == "" {
			return d, k, true
		}
		before := c.rest
		if !d.read(c, now) {
			k.read(c)
		}
		if c.rest == before {
			return d, k, false
		}
	}
}
