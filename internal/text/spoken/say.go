package spoken

import (
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// SayClock returns a time of day as people say it: 7:05 or 7点05分.
func SayClock(t time.Time, lang text.Lang) string {
	switch {
	case lang != text.Chinese:
		return fmt.Sprintf("%d:%02d", t.Hour(), t.Minute())
	case t.Minute() == 0:
		return fmt.Sprintf("%d点", t.Hour())
	}
	return fmt.Sprintf("%d点%02d分", t.Hour(), t.Minute())
}

// SayDuration returns a length of time as people say it, to the second.
func SayDuration(d time.Duration, lang text.Lang) string {
	d = d.Round(time.Second)
	var parts []string
	for _, unit := range []struct {
		length        time.Duration
		zh, one, many string
	}{
		{24 * time.Hour, "天", "day", "days"},
		{time.Hour, "小时", "hour", "hours"},
		{time.Minute, "分钟", "minute", "minutes"},
		{time.Second, "秒", "second", "seconds"},
	} {
		n := int(d / unit.length)
		d -= time.Duration(n) * unit.length
		switch {
		case n == 0:
		case lang == text.Chinese:
			parts = append(parts, fmt.Sprintf("%d%s", n, unit.zh))
		case n == 1:
			parts = append(parts, "1 "+unit.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.many))
		}
	}
	if len(parts) == 0 {
		return lang.Pick("0秒", "0 seconds")
	}
	return strings.Join(parts, lang.Pick("", " "))
}

// SayTime returns t as people say it at now, in English with its preposition:
// the time of day, and the day where it is not today.
func SayTime(t, now time.Time, lang text.Lang) string {
	day := func(t time.Time) int {
		return int(time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	when := lang.Pick("", "at ") + SayClock(t, lang)
	switch day(t) - day(now) {
	case 0:
		return when
	case 1:
		return lang.Pick("明天", "tomorrow ") + when
	}
	if lang == text.Chinese {
		return fmt.Sprintf("%d月%d日%s", t.Month(), t.Day(), when)
	}
	return t.Format("on January 2 ") + when
}
