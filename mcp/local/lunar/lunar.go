// Package lunar is the Chinese calendar from 1900-01-01 to 2100-12-31: lunar
// dates with leap months, the years' stems, branches and animals, the 24 solar
// terms and the festivals of both calendars. It is pure. All functions may be
// called at the same time.
package lunar

import (
	"errors"
	"time"
)

const (
	firstYear = 1899 // lunar year in which 1900-01-01 is
	lastYear  = 2100
)

// ErrRange says that a date is before 1900-01-01 or after 2100-12-31, or that
// there is no such lunar date.
var ErrRange = errors.New("no date of the Chinese calendar from 1900 to 2100")

// Date is a day of the Chinese calendar.
type Date struct {
	Year  int  // the year in which its first month begins
	Month int  // 1 to 12
	Leap  bool // it is the leap month after the month of that number
	Day   int  // 1 to 30
}

// dayNumber counts days, whatever the zone: 0 is the first of the first month of 1899.
func dayNumber(year int, month time.Month, day int) int {
	day0 := time.Date(1899, time.February, 10, 0, 0, 0, 0, time.UTC)
	return int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Sub(day0) / (24 * time.Hour))
}

// year is the shape of a lunar year.
type year struct {
	bits uint32
	leap int // the month that the leap month follows, 0 for none
}

func yearOf(n int) year {
	v := months()[n-firstYear]
	return year{v & 0x1fff, int(v >> 13)}
}

// count returns the number of months.
func (y year) count() int {
	if y.leap > 0 {
		return 13
	}
	return 12
}

// length is the number of days of the month at place i, from 0.
func (y year) length(i int) int { return 29 + int(y.bits>>i&1) }

// days is the number of days of the year.
func (y year) days() int {
	days := 0
	for i := range y.count() {
		days += y.length(i)
	}
	return days
}

// place returns the index of a month in the year, from 0; false if there is none.
func (y year) place(month int, leap bool) (int, bool) {
	i := month - 1
	if leap || (y.leap > 0 && month > y.leap) {
		i++
	}
	return i, month >= 1 && month <= 12 && (!leap || month == y.leap)
}

// Of is the day of the Chinese calendar that the date of t is, in t's zone.
func Of(t time.Time) (Date, error) {
	if t.Year() < 1900 || t.Year() > 2100 {
		return Date{}, ErrRange
	}
	n := dayNumber(t.Date())
	for number := firstYear; number <= lastYear; number++ {
		y := yearOf(number)
		if days := y.days(); n >= days {
			n -= days
			continue
		}
		for i := range y.count() {
			if length := y.length(i); n >= length {
				n -= length
				continue
			}
			d := Date{Year: number, Month: i + 1, Day: n + 1}
			if y.leap > 0 && i >= y.leap {
				d.Month, d.Leap = i, i == y.leap
			}
			return d, nil
		}
	}
	return Date{}, ErrRange
}

// Solar is the day of the usual calendar, at midnight in UTC. ErrRange says that
// there is no such lunar date.
func (d Date) Solar() (time.Time, error) {
	if d.Year < firstYear || d.Year > lastYear {
		return time.Time{}, ErrRange
	}
	y := yearOf(d.Year)
	place, ok := y.place(d.Month, d.Leap)
	if !ok || d.Day < 1 || d.Day > y.length(place) {
		return time.Time{}, ErrRange
	}
	n := d.Day - 1
	for i := range place {
		n += y.length(i)
	}
	for number := firstYear; number < d.Year; number++ {
		n += yearOf(number).days()
	}
	return time.Date(1899, time.February, 10+n, 0, 0, 0, 0, time.UTC), nil
}

// last reports whether it is the last day of its year.
func (d Date) last() bool {
	if d.Year < firstYear || d.Year > lastYear {
		return false
	}
	y := yearOf(d.Year)
	place, ok := y.place(d.Month, d.Leap)
	return ok && place == y.count()-1 && d.Day == y.length(place)
}
