// Package hours reads spans of time that come again each day or on days of the week, such as "22:00-07:00" or
// "mon-fri 22:00-07:00, sat-sun 23:00-09:00".
package hours

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Errors of what is read.
var (
	ErrSpan = errors.New("a span looks like 22:00-07:00, or mon-fri 22:00-07:00")
	ErrMany = errors.New("there are more than 16 spans")
)

const maxSpans = 16

// Set holds spans of time. The zero value has none.
type Set struct{ spans []span }

// span begins on some days of the week, and lasts a day at most.
type span struct {
	days     [7]bool // by time.Weekday, on which it begins
	from, to int     // minutes of the day; to may be of the next one
}

// Parse reads spans that are separated by commas. "" and "none" are none.
func Parse(text string) (Set, error) {
	var s Set
	if text = strings.ToLower(strings.TrimSpace(text)); text == "" || text == "none" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		one, err := parseSpan(strings.TrimSpace(part))
		if err != nil {
			return Set{}, err
		}
		if s.spans = append(s.spans, one); len(s.spans) > maxSpans {
			return Set{}, ErrMany
		}
	}
	return s, nil
}

// parseSpan reads one span.
func parseSpan(text string) (s span, err error) {
	days, times, both := strings.Cut(text, " ")
	if !both {
		days, times = "sun-sat", text
	}
	first, last, ranged := strings.Cut(days, "-")
	if !ranged {
		last = first
	}
	from, to := weekday(first), weekday(last)
	begin, end, ok := strings.Cut(strings.TrimSpace(times), "-")
	if from < 0 || to < 0 || !ok {
		return s, fmt.Errorf("%w: %q", ErrSpan, text)
	}
	for d := from; ; d = (d + 1) % 7 {
		s.days[d] = true
		if d == to {
			break
		}
	}
	if s.from, err = clock(begin); err != nil {
		return s, err
	}
	if s.to, err = clock(end); err != nil {
		return s, err
	}
	if s.to <= s.from {
		s.to += 24 * 60
	}
	return s, nil
}

func weekday(name string) int {
	for d := range 7 {
		if strings.ToLower(time.Weekday(d).String()[:3]) == name {
			return d
		}
	}
	return -1
}

// clock reads a time of day, and returns its minutes.
func clock(text string) (int, error) {
	h, m, ok := strings.Cut(strings.TrimSpace(text), ":")
	hour, herr := strconv.ParseUint(h, 10, 8)
	minute, merr := strconv.ParseUint(m, 10, 8)
	if !ok || len(h) > 2 || len(m) != 2 || herr != nil || merr != nil || hour > 23 || minute > 59 {
		return 0, fmt.Errorf("%w: %q is no time of day", ErrSpan, text)
	}
	return int(hour)*60 + int(minute), nil
}

// None reports whether there is no span.
func (s Set) None() bool { return len(s.spans) == 0 }

// At reports whether a moment lies in a span, by the clocks of its zone, and when that changes next; zero: never.
func (s Set) At(now time.Time) (in bool, until time.Time) {
	if end := s.end(now); !end.IsZero() {
		for range 8 * maxSpans { // spans that touch are one
			next := s.end(end)
			if next.IsZero() {
				return true, end
			}
			end = next
		}
		return true, time.Time{} // it is always so
	}
	for d := range 9 {
		for _, one := range s.spans {
			begin, end := one.on(now, d)
			if begin.After(now) && end.After(begin) && (until.IsZero() || begin.Before(until)) {
				until = begin
			}
		}
	}
	return false, until
}

// end returns the latest end of the spans in which a moment lies; zero: it lies in none.
func (s Set) end(now time.Time) (latest time.Time) {
	for _, one := range s.spans {
		for d := -2; d <= 1; d++ {
			if begin, end := one.on(now, d); !begin.After(now) && end.After(now) && end.After(latest) {
				latest = end
			}
		}
	}
	return latest
}

// on returns when a span begins and ends that begins some days after a day; zero times: it does not on that day.
func (s span) on(day time.Time, after int) (begin, end time.Time) {
	y, m, d := day.Date()
	if !s.days[(int(day.Weekday())+after+14)%7] {
		return time.Time{}, time.Time{}
	}
	at := func(minutes int) time.Time { return time.Date(y, m, d+after, 0, minutes, 0, 0, day.Location()) }
	return at(s.from), at(s.to)
}
