package spoken

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// SayClock returns a time of day as people say it: 7:05 or 7点05分.
func SayClock(t time.Time, lang text.Lang) string {
	switch {
	case !lang.IsChinese():
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
		length time.Duration
		zh, en string
	}{{24 * time.Hour, "天", "day"}, {time.Hour, "小时", "hour"}, {time.Minute, "分钟", "minute"}, {time.Second, "秒", "second"}} {
		n := int(d / unit.length)
		d -= time.Duration(n) * unit.length
		if n != 0 {
			parts = append(parts, sayUnits(n, unit.zh, unit.en, lang))
		}
	}
	if len(parts) == 0 {
		return sayUnits(0, "秒", "second", lang)
	}
	return strings.Join(parts, lang.Pick("", " "))
}

// symbols are the units as the languages write them for which nobody has written down more.
var symbols = map[string]string{"day": "d", "hour": "h", "minute": "min", "second": "s"}

// sayUnits returns a number with its unit, en in the singular: 2小时, 2 hours, 2 h.
func sayUnits(n int, zh, en string, lang text.Lang) string {
	if !lang.IsOwn() {
		return strconv.Itoa(n) + " " + symbols[en]
	}
	if n != 1 {
		en += "s"
	}
	return strconv.Itoa(n) + lang.Pick(zh, " "+en)
}

// SayCount returns how often something happened as people say it: once, 3 times, 3次.
func SayCount(n int, lang text.Lang) string {
	if !lang.IsOwn() {
		return strconv.Itoa(n)
	}
	if !lang.IsChinese() && n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + lang.Pick("次", " times")
}

// SayTime returns t as people say it at now, in English with its preposition:
// the time of day, and the day where it is not today.
func SayTime(t, now time.Time, lang text.Lang) string {
	if !lang.IsOwn() {
		if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
			return SayClock(t, lang)
		}
		return SayDay(t, lang) + " " + SayClock(t, lang)
	}
	when := lang.Pick("", "at ") + SayClock(t, lang)
	switch t.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		return when
	case noonIn(now, 1).Format(time.DateOnly):
		return lang.Pick("明天", "tomorrow ") + when
	}
	if lang.IsChinese() {
		return fmt.Sprintf("%d月%d日%s", t.Month(), t.Day(), when)
	}
	return t.Format("on January 2 ") + when
}

// SayDay returns the date of t as people say it in its year: 11月22日, November 22.
func SayDay(t time.Time, lang text.Lang) string {
	if !lang.IsOwn() {
		return t.Format(time.DateOnly)
	}
	return lang.Pick(fmt.Sprintf("%d月%d日", t.Month(), t.Day()), t.Format("January 2"))
}

// SayDate returns the date of t with its year: 2026年11月22日, November 22, 2026.
func SayDate(t time.Time, lang text.Lang) string {
	if !lang.IsOwn() {
		return t.Format(time.DateOnly)
	}
	return lang.Pick(fmt.Sprintf("%d年%d月%d日", t.Year(), t.Month(), t.Day()), t.Format("January 2, 2006"))
}

// SayWeekday returns the day of the week of t: 星期日, Sunday.
func SayWeekday(t time.Time, lang text.Lang) string {
	return lang.Pick("星期"+string([]rune("日一二三四五六")[t.Weekday()]), t.Weekday().String())
}

// SayTimeOfDay returns the time of day of t in twelve hours: 晚上8点30分, 8:30 PM.
func SayTimeOfDay(t time.Time, lang text.Lang) string {
	switch {
	case !lang.IsOwn():
		return SayClock(t, lang)
	case !lang.IsChinese():
		return t.Format("3:04 PM")
	}
	part := "晚上"
	switch h := t.Hour(); {
	case h < 6:
		part = "凌晨"
	case h < 12:
		part = "上午"
	case h < 13:
		part = "中午"
	case h < 18:
		part = "下午"
	}
	hour := t.Hour()
	if hour > 12 {
		hour -= 12
	}
	if t.Minute() == 0 {
		return fmt.Sprintf("%s%d点整", part, hour)
	}
	return fmt.Sprintf("%s%d点%d分", part, hour, t.Minute())
}

// SayInOneUnit returns a length of time in the largest unit that fits: 90分钟, 2 hours.
func SayInOneUnit(d time.Duration, lang text.Lang) string {
	n, zh, en := int(d/time.Second), "秒", "second"
	switch {
	case d%time.Hour == 0:
		n, zh, en = int(d/time.Hour), "小时", "hour"
	case d%time.Minute == 0:
		n, zh, en = int(d/time.Minute), "分钟", "minute"
	}
	return sayUnits(n, zh, en, lang)
}
