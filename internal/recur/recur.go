// Package recur computes when something comes again, by rules of RFC 5545 and the clocks of a zone.
package recur

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"xiaozhi/internal/text/spoken"
)

// Layout is how times are written that clocks show.
const Layout = "2006-01-02T15:04:05"

// MinApart is the least time between two times of a rule.
const MinApart = 5 * time.Minute

const (
	maxRule   = 200     // bytes of a rule
	maxCount  = 1000    // COUNT of a rule
	horizon   = 9 * 366 // days in which a rule must recur: February 29 comes within eight years
	checkedAt = 64      // times of a rule whose distance is checked
)

// Errors of a rule.
var (
	ErrRule  = errors.New("not a rule of RFC 5545 that this server keeps")
	ErrOften = fmt.Errorf("it comes again every %d minutes at most", int(MinApart.Minutes()))
	ErrNever = errors.New("the rule has no time to come")
)

// Times tell when something comes again. The zero value: it comes once.
type Times struct {
	Rule string // as RFC 5545 writes it, without DTSTART, in the form in which [New] returns it
	Wall string // what the clocks of Zone show at one of the times, as in [Layout]
	Zone string // IANA name
}

// New returns the times of a rule that begins at start, which is what the clocks of zone show, and the first of them after
// now. Errors are [ErrRule], [ErrOften] and [ErrNever].
func New(rule string, start time.Time, zone *time.Location, now time.Time) (t Times, due time.Time, err error) {
	start = first(rule, start, zone, now)
	kept, err := normal(rule, start, zone, now)
	if err != nil {
		return Times{}, due, err
	}
	wall, due, err := after(kept, start, zone, now)
	return Times{kept, wall.Format(Layout), zone.String()}, due, err
}

// Next returns the times from the first one after now on, and when that is. ok is false if there is none.
func (t Times) Next(now time.Time) (next Times, due time.Time, ok bool) {
	if t.Rule == "" {
		return t, due, false
	}
	zone, err := time.LoadLocation(t.Zone)
	if err != nil {
		return t, due, false
	}
	wall, err := time.Parse(Layout, t.Wall)
	if err != nil {
		return t, due, false
	}
	wall, due, err = after(t.Rule, wall, zone, now)
	if err != nil {
		return t, due, false
	}
	t.Wall = wall.Format(Layout)
	return t, due, true
}

// Latest returns the times from the last one up to now on, when that is, and how many there are from due, which is one of
// them, to it: 1000 at most.
func (t Times) Latest(due, now time.Time) (last Times, at time.Time, n int) {
	for n = 1; n < maxCount; n++ {
		next, later, ok := t.Next(due)
		if !ok || later.After(now) {
			break
		}
		t, due = next, later
	}
	return t, due, n
}

// after returns the first time after now of a rule that begins at start, which is on
// the clocks of zone: what they show, and the instant.
//
// Days and times of day are counted on those clocks, hours and minutes pass. A time
// of day that daylight saving skips is later by as much, one that comes twice counts
// once ([spoken.At]).
func after(rule string, start time.Time, zone *time.Location, now time.Time) (wall, due time.Time, err error) {
	o, err := readRule(rule, start, zone)
	if err != nil {
		return wall, due, err
	}
	if step := passing(o); step > 0 {
		due = spoken.At(start, zone)
		if !due.After(now) {
			due = due.Add((now.Sub(due)/step + 1) * step)
		}
		if wall = spoken.Wall(due); !o.Until.IsZero() && wall.After(o.Until) {
			return wall, due, ErrNever
		}
		return wall, due, nil
	}
	shown := spoken.Wall(now.In(zone)).AddDate(0, 0, -2)
	end := maxTime(start, shown).AddDate(0, 0, horizon)
	if o.Until.IsZero() || o.Until.After(end) {
		o.Until = end
	}
	r, err := rrule.NewRRule(o)
	if err != nil {
		return wall, due, fmt.Errorf("%w: %w", ErrRule, err)
	}
	next := r.Iterator()
	for {
		wall, ok := next()
		if !ok {
			return wall, due, ErrNever
		}
		if wall.Before(shown) {
			continue
		}
		if due = spoken.At(wall, zone); due.After(now) {
			return wall, due, nil
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// first returns the time from which the weeks, months or years of a rule are counted that
// leaves some out: the next one that it would have if it left out none. Whoever says
// every second Tuesday on a Saturday means the Tuesday that comes. start is what the
// clocks of zone show when the rule begins; it is returned for other rules.
func first(rule string, start time.Time, zone *time.Location, now time.Time) time.Time {
	o, err := readRule(rule, start, zone)
	if err != nil || o.Interval < 2 || o.Freq == rrule.DAILY || passing(o) > 0 {
		return start
	}
	parts := slices.DeleteFunc(strings.Split(strings.ToUpper(rule), ";"), func(part string) bool {
		return strings.HasPrefix(part, "INTERVAL=") || strings.HasPrefix(part, "COUNT=")
	})
	if wall, _, err := after(strings.Join(parts, ";"), start, zone, now); err == nil {
		return wall
	}
	return start
}

// OnDays reports whether a rule tells days alone: the time of day is that at which it begins.
func OnDays(rule string) bool {
	o, err := readRule(rule, time.Time{}, time.UTC)
	return err == nil && passing(o) == 0 && len(o.Byhour)+len(o.Byminute) == 0
}

// passing returns the step of a rule whose time passes, whatever the clocks show; 0 for others.
func passing(o rrule.ROption) time.Duration {
	switch o.Freq {
	case rrule.HOURLY:
		return time.Duration(max(1, o.Interval)) * time.Hour
	case rrule.MINUTELY:
		return time.Duration(max(1, o.Interval)) * time.Minute
	default:
		return 0
	}
}

// normal returns a rule in the form in which it is kept: with the days on which it
// begins where it names none, and an end in place of a number of times. start is what
// the clocks of zone show when it begins.
func normal(rule string, start time.Time, zone *time.Location, now time.Time) (string, error) {
	o, err := readRule(rule, start, zone)
	if err != nil {
		return "", err
	}
	kept := strings.Split(strings.ToUpper(strings.TrimSpace(rule)), ";")
	drop := func(key string) {
		kept = slices.DeleteFunc(kept, func(part string) bool { return strings.HasPrefix(part, key+"=") })
	}
	switch days := len(o.Byweekday) + len(o.Bymonthday); {
	case days > 0:
	case o.Freq == rrule.WEEKLY:
		kept = append(kept, "BYDAY="+strings.ToUpper(start.Weekday().String()[:2]))
	case o.Freq == rrule.MONTHLY && start.Day() > 28: // the last day of shorter months
		kept = append(kept, "BYMONTHDAY="+strings.TrimPrefix("28,29,30,31"[:3*(start.Day()-27)-1], ","), "BYSETPOS=-1")
	case o.Freq == rrule.MONTHLY:
		kept = append(kept, "BYMONTHDAY="+strconv.Itoa(start.Day()))
	case o.Freq == rrule.YEARLY:
		if len(o.Bymonth) == 0 {
			kept = append(kept, "BYMONTH="+strconv.Itoa(int(start.Month())))
		}
		kept = append(kept, "BYMONTHDAY="+strconv.Itoa(start.Day()))
	}
	if o.Count > 0 {
		drop("COUNT")
		end := spoken.Wall(spoken.At(start, zone).Add(time.Duration(o.Count-1) * passing(o)).In(zone))
		if passing(o) == 0 {
			o.Until = start.AddDate(0, 0, horizon*10)
			r, err := rrule.NewRRule(o)
			if err != nil {
				return "", fmt.Errorf("%w: %w", ErrRule, err)
			}
			next := r.Iterator()
			for wall, ok := next(); ok; wall, ok = next() {
				end = wall
			}
		}
		kept = append(kept, "UNTIL="+end.Format("20060102T150405"))
	}
	rule = strings.Join(kept, ";")
	return rule, apart(rule, start, zone, now)
}

// apart checks that a rule has times to come, and that they are not too near.
func apart(rule string, start time.Time, zone *time.Location, now time.Time) error {
	wall, due, err := after(rule, start, zone, now)
	if err != nil {
		return err
	}
	for range checkedAt {
		nextWall, next, err := after(rule, wall, zone, due)
		switch {
		case errors.Is(err, ErrNever):
			return nil
		case err != nil:
			return err
		case next.Sub(due) < MinApart:
			return ErrOften
		}
		wall, due = nextWall, next
	}
	return nil
}

// readRule reads a rule that begins at start on the clocks of zone. All times of it are
// what those clocks show, as UTC. It takes no rule that recurs by seconds, nor parts
// that the library would stumble over.
func readRule(rule string, start time.Time, zone *time.Location) (o rrule.ROption, err error) {
	rule = strings.ToUpper(strings.TrimSpace(rule))
	bad := func(what string) error { return fmt.Errorf("%w: %s", ErrRule, what) }
	if len(rule) > maxRule {
		return o, bad("it is too long")
	}
	var kept []string
	var until time.Time
	for part := range strings.SplitSeq(strings.TrimPrefix(rule, "RRULE:"), ";") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "FREQ", "INTERVAL", "COUNT", "WKST", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYHOUR", "BYMINUTE", "BYSETPOS":
			kept = append(kept, part)
		case "UNTIL":
			if until, err = readUntil(value, zone); err != nil {
				return o, bad("UNTIL")
			}
		default:
			return o, bad(key)
		}
	}
	if !slices.ContainsFunc(kept, func(part string) bool { return strings.HasPrefix(part, "FREQ=") }) {
		return o, bad("FREQ is missing")
	}
	read, err := rrule.StrToROption(strings.Join(kept, ";"))
	if err != nil {
		return o, bad(err.Error())
	}
	o = *read
	o.Dtstart, o.Until = start, until
	if what := unusual(o); what != "" {
		return o, bad(what)
	}
	return o, nil
}

// unusual names the part of a rule that is out of its bounds; "": none.
func unusual(o rrule.ROption) string {
	within := func(numbers []int, low, high int) bool {
		return !slices.ContainsFunc(numbers, func(n int) bool { return n < low || n > high || n == 0 && low < 0 })
	}
	days := !slices.ContainsFunc(o.Byweekday, func(d rrule.Weekday) bool {
		return d.N() != 0 && (o.Freq != rrule.MONTHLY || d.N() < -5 || d.N() > 5)
	})
	switch {
	case o.Freq == rrule.SECONDLY:
		return "FREQ=SECONDLY"
	case o.Interval < 0 || o.Interval > 1000:
		return "INTERVAL"
	case o.Count < 0 || o.Count > maxCount:
		return "COUNT"
	case !within(o.Bymonth, 1, 12):
		return "BYMONTH"
	case !within(o.Bymonthday, -31, 31):
		return "BYMONTHDAY"
	case !within(o.Byhour, 0, 23):
		return "BYHOUR"
	case !within(o.Byminute, 0, 59):
		return "BYMINUTE"
	case !within(o.Bysetpos, -31, 31):
		return "BYSETPOS"
	case !days || len(o.Byweekday) > 7:
		return "BYDAY"
	case passing(o) > 0 && len(o.Byhour)+len(o.Byminute)+len(o.Byweekday)+len(o.Bymonthday)+len(o.Bymonth)+len(o.Bysetpos) > 0:
		return "parts BY… beside hours and minutes: FREQ=DAILY with BYHOUR says the same"
	}
	return ""
}

// readUntil reads the end of a rule as what the clocks of zone show.
func readUntil(value string, zone *time.Location) (time.Time, error) {
	if t, err := time.Parse("20060102T150405Z", value); err == nil {
		return spoken.Wall(t.In(zone)), nil
	}
	if t, err := time.Parse("20060102", value); err == nil {
		return t.Add(24*time.Hour - time.Second), nil
	}
	t, err := time.Parse("20060102T150405", value)
	return t, err
}
