package spoken

import (
	"testing"
	"time"

	"xiaozhi/internal/text"
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

func TestSayTimeOfDay(t *testing.T) {
	for _, c := range []struct {
		hour, minute int
		zh, en       string
	}{
		{0, 0, "凌晨0点整", "12:00 AM"},
		{0, 5, "凌晨0点5分", "12:05 AM"},
		{8, 0, "上午8点整", "8:00 AM"},
		{12, 30, "中午12点30分", "12:30 PM"},
		{13, 0, "下午1点整", "1:00 PM"},
		{23, 59, "晚上11点59分", "11:59 PM"},
	} {
		when := time.Date(2026, time.November, 22, c.hour, c.minute, 0, 0, time.UTC)
		if zh, en := SayTimeOfDay(when, "zh"), SayTimeOfDay(when, "en"); zh != c.zh || en != c.en {
			t.Errorf("%d:%d: %q, %q", c.hour, c.minute, zh, en)
		}
	}
}

func TestSayDay(t *testing.T) {
	when := time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC)
	for lang, want := range map[text.Lang][3]string{
		"zh": {"11月22日", "2026年11月22日", "星期日"}, "en": {"November 22", "November 22, 2026", "Sunday"},
	} {
		if got := [3]string{SayDay(when, lang), SayDate(when, lang), SayWeekday(when, lang)}; got != want {
			t.Errorf("%s: %q, want %q", lang, got, want)
		}
	}
}

func TestSayInOneUnit(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		time.Second: {"1秒", "1 second"}, 90 * time.Second: {"90秒", "90 seconds"},
		90 * time.Minute: {"90分钟", "90 minutes"}, time.Hour: {"1小时", "1 hour"},
	} {
		if got := [2]string{SayInOneUnit(d, "zh"), SayInOneUnit(d, "en")}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
