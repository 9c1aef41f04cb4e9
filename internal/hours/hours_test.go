package hours

import (
	"strings"
	"testing"
	"time"
)

// TestSet: whether it is so, and when that changes next, over midnight, by days, and where clocks are set.
func TestSet(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		spans, at, want string // want: in or out, and until when
	}{
		{"22:00-07:00", "2026-11-20 21:59", "out 2026-11-20 22:00"},
		{"22:00-07:00", "2026-11-20 22:00", "in 2026-11-21 07:00"},
		{"22:00-07:00", "2026-11-21 06:59", "in 2026-11-21 07:00"},
		{"22:00-07:00", "2026-11-21 07:00", "out 2026-11-21 22:00"},
		{"13:00-14:30", "2026-11-21 13:30", "in 2026-11-21 14:30"},
		{"mon-fri 22:00-07:00", "2026-11-21 03:00", "in 2026-11-21 07:00"},  // saturday, of friday
		{"mon-fri 22:00-07:00", "2026-11-21 23:00", "out 2026-11-23 22:00"}, // until monday
		{"sat-mon 23:00-09:00", "2026-11-23 23:30", "in 2026-11-24 09:00"},
		{"fri 22:00-24:00", "2026-11-20 22:00", "error"},
		{"22:00-00:00, 00:00-06:00", "2026-11-20 23:00", "in 2026-11-21 06:00"},
		{"00:00-12:00, 12:00-00:00", "2026-11-20 23:00", "in never"},
		{"08:00-08:00", "2026-11-20 23:00", "in never"},
		{"sun 01:00-04:00", "2026-03-29 03:30", "in 2026-03-29 04:00"}, // there is no 02:30
		{"02:30-02:45", "2026-03-28 12:00", "out 2026-03-29 03:30"},
		{"sun 01:00-04:00", "2026-10-25 03:30", "in 2026-10-25 04:00"},
		{"", "2026-11-20 23:00", "out never"},
		{"None", "2026-11-20 23:00", "out never"},
		{"22:00", "", "error"},
		{"22-7", "", "error"},
		{"mon- 22:00-07:00", "", "error"},
		{"someday 22:00-07:00", "", "error"},
		{"22:00-07:00,", "", "error"},
		{"7:5-8:00", "", "error"},
		{"-1:00-8:00", "", "error"},
		{strings.Repeat("22:00-07:00,", 16) + "22:00-07:00", "", "error"},
	} {
		s, err := Parse(test.spans)
		if err != nil {
			if test.want != "error" {
				t.Errorf("%q: %v", test.spans, err)
			}
			continue
		}
		at, err := time.ParseInLocation("2006-01-02 15:04", test.at, berlin)
		if err != nil {
			t.Errorf("%q is taken", test.spans)
			continue
		}
		in, until := s.At(at)
		got := map[bool]string{true: "in ", false: "out "}[in]
		if until.IsZero() {
			got += "never"
		} else {
			got += until.Format("2006-01-02 15:04")
		}
		if got != test.want {
			t.Errorf("%q at %s: %s, want %s", test.spans, test.at, got, test.want)
		}
	}
}

// FuzzParse: whatever is read, the next change lies ahead.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"22:00-07:00", "mon-fri 22:00-07:00, sat-sun 23:00-09:00", "none", "sun 0:00-0:01", "x", "-", " ,"} {
		f.Add(seed, int64(1795000000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0).UTC()
		in, until := s.At(now)
		if !until.IsZero() && !until.After(now) {
			t.Errorf("%q at %v: %v", text, now, until)
		}
		if again, _ := s.At(until); !until.IsZero() && again == in {
			t.Errorf("%q at %v: nothing changes at %v", text, now, until)
		}
	})
}
