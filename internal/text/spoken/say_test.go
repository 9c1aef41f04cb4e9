package spoken

import (
	"testing"
	"time"
)

func TestSayDuration(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0:                              {"0秒", "0 seconds"},
		time.Second:                    {"1秒", "1 second"},
		90 * time.Second:               {"1分钟30秒", "1 minute 30 seconds"},
		10*time.Minute - time.Second/5: {"10分钟", "10 minutes"},
		26*time.Hour + time.Minute:     {"1天2小时1分钟", "1 day 2 hours 1 minute"},
	} {
		if got := [2]string{SayDuration(d, "zh"), SayDuration(d, "en")}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestSayTime(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration][2]string{
		30 * time.Minute:            {"23点30分", "at 23:30"},
		2*time.Hour + 5*time.Minute: {"明天1点05分", "tomorrow at 1:05"},
		50 * time.Hour:              {"1月3日1点", "on January 3 at 1:00"},
	} {
		at := now.Add(after)
		if got := [2]string{SayTime(at, now, "zh"), SayTime(at, now, "en")}; got != want {
			t.Errorf("%v: %q, want %q", after, got, want)
		}
	}
}
