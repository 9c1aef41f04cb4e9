package recur

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func zoneOf(tb testing.TB, name string) *time.Location {
	tb.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return zone
}

// TestRuleTimes: the times of a rule are those that the clocks of its zone show, over
// daylight saving.
func TestRuleTimes(t *testing.T) {
	for _, test := range []struct{ name, zone, rule, start, now, want string }{
		{"a day", "Asia/Shanghai", "FREQ=DAILY", "2026-11-21T07:00:00", "2026-11-21T06:59:00+08:00", "2026-11-21T07:00:00+08:00 2026-11-22T07:00:00+08:00"},
		{"weekdays", "Asia/Shanghai", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "2026-11-20T07:00:00", "2026-11-20T07:00:00+08:00", "2026-11-23T07:00:00+08:00 2026-11-24T07:00:00+08:00"},
		{"07:00 stays 07:00 in spring", "Europe/Berlin", "FREQ=DAILY", "2026-03-28T07:00:00", "2026-03-28T06:00:00+01:00", "2026-03-28T07:00:00+01:00 2026-03-29T07:00:00+02:00 2026-03-30T07:00:00+02:00"},
		{"07:00 stays 07:00 in autumn", "Europe/Berlin", "FREQ=DAILY", "2026-10-24T07:00:00", "2026-10-24T06:00:00+02:00", "2026-10-24T07:00:00+02:00 2026-10-25T07:00:00+01:00 2026-10-26T07:00:00+01:00"},
		{"an hour that is skipped", "Europe/Berlin", "FREQ=DAILY", "2026-03-28T02:30:00", "2026-03-28T00:00:00+01:00", "2026-03-28T02:30:00+01:00 2026-03-29T03:30:00+02:00 2026-03-30T02:30:00+02:00"},
		{"an hour that comes twice", "Europe/Berlin", "FREQ=DAILY", "2026-10-24T02:30:00", "2026-10-24T00:00:00+02:00", "2026-10-24T02:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"half an hour that is skipped", "Australia/Lord_Howe", "FREQ=DAILY", "2026-10-03T02:15:00", "2026-10-03T00:00:00+10:30", "2026-10-03T02:15:00+10:30 2026-10-04T02:45:00+11:00 2026-10-05T02:15:00+11:00"},
		{"every second Tuesday", "America/New_York", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "2026-10-27T08:00:00", "2026-10-26T00:00:00-04:00", "2026-10-27T08:00:00-04:00 2026-11-10T08:00:00-05:00 2026-11-24T08:00:00-05:00"},
		{"the second Tuesday", "America/New_York", "FREQ=MONTHLY;BYDAY=2TU", "2026-11-01T08:00:00", "2026-11-01T00:00:00-04:00", "2026-11-10T08:00:00-05:00 2026-12-08T08:00:00-05:00"},
		{"the last Friday", "UTC", "FREQ=MONTHLY;BYDAY=-1FR", "2026-11-01T08:00:00", "2026-11-01T00:00:00Z", "2026-11-27T08:00:00Z 2026-12-25T08:00:00Z"},
		{"the 31st", "UTC", "FREQ=MONTHLY", "2027-01-31T08:00:00", "2027-01-01T00:00:00Z", "2027-01-31T08:00:00Z 2027-02-28T08:00:00Z 2027-03-31T08:00:00Z 2027-04-30T08:00:00Z"},
		{"the 30th", "UTC", "FREQ=MONTHLY", "2027-01-30T08:00:00", "2027-01-01T00:00:00Z", "2027-01-30T08:00:00Z 2027-02-28T08:00:00Z 2027-03-30T08:00:00Z"},
		{"the 29th", "UTC", "FREQ=MONTHLY", "2027-01-29T08:00:00", "2027-01-01T00:00:00Z", "2027-01-29T08:00:00Z 2027-02-28T08:00:00Z 2027-03-29T08:00:00Z"},
		{"February 29", "UTC", "FREQ=YEARLY", "2028-02-29T08:00:00", "2028-01-01T00:00:00Z", "2028-02-29T08:00:00Z 2032-02-29T08:00:00Z"},
		{"every two hours, which pass", "Europe/Berlin", "FREQ=HOURLY;INTERVAL=2", "2026-03-29T00:00:00", "2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00 2026-03-29T05:00:00+02:00"},
		{"every hour, which passes twice", "Europe/Berlin", "FREQ=HOURLY", "2026-10-25T01:00:00", "2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00"},
		{"three times", "UTC", "FREQ=DAILY;COUNT=3", "2026-11-21T07:00:00", "2026-11-21T00:00:00Z", "2026-11-21T07:00:00Z 2026-11-22T07:00:00Z 2026-11-23T07:00:00Z -"},
		{"until a day", "Asia/Shanghai", "FREQ=DAILY;UNTIL=20261122", "2026-11-21T07:00:00", "2026-11-21T00:00:00+08:00", "2026-11-21T07:00:00+08:00 2026-11-22T07:00:00+08:00 -"},
		{"until an instant", "Asia/Shanghai", "FREQ=DAILY;UNTIL=20261121T225959Z", "2026-11-21T07:00:00", "2026-11-21T00:00:00+08:00", "2026-11-21T07:00:00+08:00 -"},
		{"four times in an hour", "UTC", "FREQ=MINUTELY;INTERVAL=15;COUNT=4", "2026-11-21T07:00:00", "2026-11-21T06:00:00Z", "2026-11-21T07:00:00Z 2026-11-21T07:15:00Z 2026-11-21T07:30:00Z 2026-11-21T07:45:00Z -"},
		{"twice a day", "UTC", "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0", "2026-11-21T08:00:00", "2026-11-21T09:00:00Z", "2026-11-21T20:00:00Z 2026-11-22T08:00:00Z"},
		{"in lower case, with its name", "UTC", "rrule:freq=weekly", "2026-11-21T08:00:00", "2026-11-21T09:00:00Z", "2026-11-28T08:00:00Z 2026-12-05T08:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			zone := zoneOf(t, test.zone)
			now, err := time.Parse(time.RFC3339, test.now)
			if err != nil {
				t.Fatal(err)
			}
			start, err := time.Parse(Layout, test.start)
			if err != nil {
				t.Fatal(err)
			}
			rule, err := normal(test.rule, start, zone, now)
			if err != nil {
				t.Fatal(err)
			}
			r, due := Times{rule, test.start, test.zone}, now
			var got []string
			for range strings.FieldsSeq(test.want) {
				next, at, ok := r.Next(due)
				if !ok {
					got = append(got, "-")
					break
				}
				r, due = next, at
				got = append(got, due.Format(time.RFC3339))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s from %s\n got %s\nwant %s", rule, test.start, strings.Join(got, " "), test.want)
			}
		})
	}
}

// TestFirst: what leaves out weeks begins with the next day of its kind.
func TestFirst(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 15, 0, 0, time.UTC) // a Saturday
	for rule, want := range map[string]string{
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU": "2026-11-24 2026-12-08", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR": "2026-11-23 2026-11-27 2026-12-07", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA": "2026-11-28 2026-12-12",
		"FREQ=MONTHLY;INTERVAL=2;BYDAY=1MO": "2026-12-07 2027-02-01", "FREQ=DAILY;INTERVAL=2": "2026-11-23 2026-11-25", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU;COUNT=2": "2026-11-24 2026-12-08",
	} {
		var got []string
		r, due, err := New(rule, time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), time.UTC, now)
		for ok := err == nil; ok && len(got) < len(strings.Fields(want)); r, due, ok = r.Next(due) {
			got = append(got, due.Format(time.DateOnly))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", rule, got, err, want)
		}
	}
}

func TestBadRules(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for rule, want := range map[string]error{
		"": ErrRule, "daily": ErrRule, "FREQ=DAILY;FOO=1": ErrRule, "FREQ=SECONDLY": ErrRule, "FREQ=DAILY;INTERVAL=-1": ErrRule, "INTERVAL=2": ErrRule,
		"FREQ=DAILY;BYSECOND=1": ErrRule, "FREQ=MONTHLY;BYDAY=60MO": ErrRule, "FREQ=YEARLY;BYMONTH=13": ErrRule, "FREQ=WEEKLY;BYDAY=XX": ErrRule,
		"FREQ=DAILY;BYHOUR=24": ErrRule, "FREQ=HOURLY;BYDAY=MO": ErrRule, "FREQ=DAILY;COUNT=1000000": ErrRule, "FREQ=DAILY;DTSTART=20261121T000000Z": ErrRule,
		"FREQ=MINUTELY": ErrOften, "FREQ=DAILY;BYHOUR=7;BYMINUTE=0,1,2": ErrOften, "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30": ErrNever,
		"FREQ=DAILY;UNTIL=20200101": ErrNever, "FREQ=DAILY;" + strings.Repeat("BYMONTH=1,", 40): ErrRule,
	} {
		if _, err := normal(rule, now, time.UTC, now); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", rule, err, want)
		}
	}
}

// FuzzRule: whatever a model writes for a rule, it is refused or has times that come
// one after the other.
func FuzzRule(f *testing.F) {
	for _, rule := range []string{
		"FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,TU;INTERVAL=2", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "FREQ=HOURLY;COUNT=7", "FREQ=DAILY;UNTIL=20270101T000000Z", "FREQ=WEEKLY;BYSETPOS=3;BYDAY=MO", "RRULE:FREQ=DAILY;WKST=SU",
	} {
		f.Add(rule)
	}
	zone := zoneOf(f, "Europe/Berlin")
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, zone)
	f.Fuzz(func(t *testing.T, rule string) {
		start := time.Date(2026, 3, 28, 2, 30, 0, 0, time.UTC)
		kept, err := normal(rule, start, zone, now)
		if err != nil {
			return
		}
		r, due := Times{kept, start.Format(Layout), zone.String()}, now
		for range 8 {
			next, at, ok := r.Next(due)
			if !ok {
				break
			}
			if !at.After(due) {
				t.Fatalf("%q: %v after %v", kept, at, due)
			}
			r, due = next, at
		}
	})
}
