package spoken

import (
	"errors"
	"testing"
	"time"
)

// TestReset moves what is due tomorrow at 6:00 and today at 20:00, on a Tuesday at 15:04.
func TestReset(t *testing.T) {
	now := time.Date(2026, 11, 24, 15, 4, 0, 0, time.FixedZone("", 8*3600))
	early, late := time.Date(2026, 11, 25, 6, 0, 0, 0, now.Location()), time.Date(2026, 11, 24, 20, 0, 0, 0, now.Location())
	for _, test := range []struct {
		due   time.Time
		words string
		want  string
		named bool
	}{
		{early, "seven", "11-25 07:00", false},
		{early, "七点半", "11-25 07:30", false},
		{early, "half past six", "11-25 06:30", false},
		{early, "7 pm", "11-25 19:00", false},
		{early, "晚上八点", "11-25 20:00", false},
		{early, "tomorrow at seven", "11-25 07:00", true},
		{early, "friday", "11-27 06:00", true},
		{early, "周五早上七点", "11-27 07:00", true},
		{early, "noon", "11-25 12:00", false},
		{early, "05:30", "11-25 05:30", false},
		{early, "2026-12-01 08:00", "12-01 08:00", true},
		{late, "nine", "11-24 21:00", false},
		{late, "九点", "11-24 21:00", false},
		{late, "to seven", "11-24 19:00", false},
		{late, "tomorrow", "11-25 20:00", true},
		{late, "三点", "11-25 03:00", false}, // of today it has passed
		{late, "10 minutes", "11-24 15:14", false},
		{late, "半小时后", "11-24 15:34", false},
	} {
		got, named, err := Reset(test.words, test.due, now)
		if err != nil || got.Format("01-02 15:04") != test.want || named != test.named {
			t.Errorf("%s, due at %s: %s, %v, %v, want %s", test.words, test.due.Format("15:04"), got.Format("01-02 15:04"), named, err, test.want)
		}
	}
	for words, want := range map[string]error{"february 30": ErrNoDate, "today at 7 am": ErrPast, "in two years": ErrTooLong, "soon": nil, "": nil, "25点": nil} {
		if at, _, err := Reset(words, late, now); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %s, %v, want %v", words, at, err, want)
		}
	}
}

func TestShift(t *testing.T) {
	for words, want := range map[string]time.Duration{
		"5 minutes": 5 * time.Minute, "+10分钟": 10 * time.Minute, "-半小时": -30 * time.Minute, "minus 1 hour": -time.Hour, "− 20 minutes": -20 * time.Minute, "提前五分钟": -5 * time.Minute, "减五分钟": -5 * time.Minute,
	} {
		if got, err := Shift(words); got != want || err != nil {
			t.Errorf("%s: %s, %v", words, got, err)
		}
	}
	if got, err := Shift("-"); err == nil {
		t.Error(got)
	}
}
