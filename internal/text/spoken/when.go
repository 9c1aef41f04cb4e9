package spoken

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

var (
	// ErrPast says that a time has passed already.
	ErrPast = errors.New("that time has passed")
	// ErrNoDate says that a month has no such day: February 30.
	ErrNoDate = errors.New("this date does not exist")
	// ErrRepeats says that a time comes again and again.
	ErrRepeats = errors.New("it comes again and again in a way that is not understood")
)

// Time reads a time to come: 明天早上七点, 11月25日15:30, 10分钟后, 2026-11-25T15:30:00+08:00, next
// friday at noon. now says the present and the zone of times that name none. A time without a day
// is the next one; 7 without morning or evening is the next 7, on a named day the one in the
// morning. A day without a time is 9 o'clock, a part of a day its usual hour (早上 8, 中午 12,
// 下午 15, 晚上 20). The result is after now, at most a year ahead, in now's zone.
func Time(s string, now time.Time) (time.Time, error) {
	folded := bare(fold(s))
	if repeats(folded) {
		return time.Time{}, ErrRepeats
	}
	at, ok := written(strings.TrimSpace(s), now.Location())
	if !ok {
		var err error
		if at, err = said(folded, now); err != nil {
			d, wrong := Duration(s)
			switch {
			case errors.Is(wrong, ErrTooLong):
				return time.Time{}, wrong
			case wrong != nil:
				return time.Time{}, err
			}
			return now.Add(d).Round(0), nil
		}
	}
	switch {
	case !at.After(now):
		return time.Time{}, ErrPast
	case at.Sub(now) > MaxDuration:
		return time.Time{}, ErrTooLong
	}
	return at.In(now.Location()), nil
}

// bare drops what a request says around its time: 明天早上七点提醒我开会 is 明天早上七点.
func bare(folded string) string {
	for _, start := range []string{"请", "提醒我", "叫我", "remind me ", "wake me up ", "wake me "} {
		folded = strings.TrimPrefix(folded, start)
	}
	for _, word := range []string{"提醒", "叫我", "叫醒", "喊我", "通知我", " remind me", " please"} {
		if i := strings.Index(folded, word); i > 0 {
			folded = folded[:i]
		}
	}
	return strings.TrimSpace(folded)
}

// repeats reports whether a time is one that comes again and again.
func repeats(folded string) bool {
	words := []string{"每", "天天", "工作日", "every", "daily", "each ", "weekly", "hourly", "weekdays"}
	for n := range 7 {
		words = append(words, strings.ToLower(time.Weekday(n).String())+"s")
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(folded, word) })
}

// written reads the forms of ISO 8601.
func written(text string, zone *time.Location) (time.Time, bool) {
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04",
		"2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700",
	} {
		t, err := time.Parse(layout, text)
		switch {
		case err != nil:
		case strings.Contains(layout, "Z07"):
			return t, true
		default:
			return At(t, zone), true
		}
	}
	return time.Time{}, false
}

// AtClock reports whether words are a time of day without a day, and whether clocks show
// it at t: 早上七点, 7 am, half past seven. Without morning or evening 7 is also 19:00.
func AtClock(words string, t time.Time) (at, isClock bool) {
	c := &cursor{strings.TrimPrefix(bare(fold(words)), "at ")}
	var k clock
	for c.rest != "" {
		before := c.rest
		if k.read(c); c.rest == before {
			return false, false
		}
		c.skip(" ", "的")
	}
	hour, err := k.hour24()
	if !k.known || err != nil {
		return false, false
	}
	evening := k.part == wholeDay && !k.exact && k.hour >= 1 && k.hour <= 12 && (hour+12)%24 == t.Hour()
	return (hour%24 == t.Hour() || evening) && k.minute == t.Minute(), true
}

// InPart reports whether words name a part of a day and no time, and whether t is in it: tomorrow morning, 明天早上.
func InPart(words string, t, now time.Time) (in, isPart bool) {
	c := &cursor{bare(fold(words))}
	var d day
	var k clock
	for c.rest != "" {
		before := c.rest
		if !d.read(c, now) {
			k.read(c)
		}
		if c.rest == before {
			return false, false
		}
		c.skip(" ", "的", "in the ", "on ")
	}
	if k.known || k.part == wholeDay {
		return false, false
	}
	hours := map[dayPart][2]int{earlyHours: {0, 6}, morning: {4, 12}, noon: {11, 14}, afternoon: {12, 18}, evening: {17, 24}, night: {20, 24}}[k.part]
	sameDay := !d.known || d.date.Format(time.DateOnly) == t.Format(time.DateOnly)
	return sameDay && t.Hour() >= hours[0] && t.Hour() < hours[1], true
}

// said reads a day and a time of day in words, in either order.
func said(folded string, now time.Time) (time.Time, error) {
	c := &cursor{folded}
	var d day
	var k clock
	for {
		c.skip(
			" ", ",", "at ", "on ", "by ", "the ", "of ", "around ", "about ", "exactly ", "sharp", "please",
			"在", "的", "到", "于", "左右", "准时", "大概", "大约",
		)
		if c.rest == "" {
			break
		}
		before := c.rest
		if !d.read(c, now) {
			k.read(c)
		}
		if c.rest == before {
			return time.Time{}, fmt.Errorf("%q is no time such as 明天早上七点 or tomorrow at 7 am", text.Cut(before, maxQuoted))
		}
	}
	if !d.known && !k.known && k.part == wholeDay {
		return time.Time{}, errors.New("it is no time such as 明天早上七点 or tomorrow at 7 am")
	}
	return k.on(d, now)
}

// on puts the time of day on the day.
func (k clock) on(d day, now time.Time) (time.Time, error) {
	date := d.date
	if !d.known {
		date = now
	}
	switch {
	case k.known:
	case k.part != wholeDay:
		k.hour = k.usual
	case d.later: // the same time of day
		k.exact = true
		k.hour, k.minute, k.second = now.Clock()
	default:
		k.hour = 9
	}
	hour, err := k.hour24()
	switch {
	case d.absent:
		return time.Time{}, ErrNoDate
	case err != nil:
		return time.Time{}, err
	}
	at := func(add, hour int) time.Time {
		return At(time.Date(date.Year(), date.Month(), date.Day()+add, hour, k.minute, k.second, 0, time.UTC), now.Location())
	}
	if t := at(0, hour); t.After(now) {
		return t, nil
	}
	if k.known && k.part == wholeDay && k.hour >= 1 && k.hour <= 12 && !k.exact && (!d.known || d.today) {
		if t := at(0, hour+12); t.After(now) { // the next 7 o'clock
			return t, nil
		}
	}
	switch {
	case !d.known:
		return at(1, hour), nil
	case d.weekly:
		return at(7, hour), nil
	case d.yearly && d.on(date.Year()+1, int(date.Month()), date.Day(), now),
		d.monthly && d.on(date.Year(), int(date.Month())+1, date.Day(), now):
		date = d.date
		return at(0, hour), nil
	}
	return time.Time{}, ErrPast
}
