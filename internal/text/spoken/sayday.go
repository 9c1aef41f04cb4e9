package spoken

import (
	"fmt"
	"strconv"
	"time"

	"xiaozhi/internal/text"
)

// SayDay returns the date of t as people say it in its year: 11月22日, November 22.
func SayDay(t time.Time, lang text.Lang) string {
	return lang.Pick(fmt.Sprintf("%d月%d日", t.Month(), t.Day()), t.Format("January 2"))
}

// SayDate returns the date of t with its year: 2026年11月22日, November 22, 2026.
func SayDate(t time.Time, lang text.Lang) string {
	return lang.Pick(fmt.Sprintf("%d年%d月%d日", t.Year(), t.Month(), t.Day()), t.Format("January 2, 2006"))
}

// SayWeekday returns the day of the week of t: 星期日, Sunday.
func SayWeekday(t time.Time, lang text.Lang) string {
	return lang.Pick("星期"+string([]rune("日一二三四五六")[t.Weekday()]), t.Weekday().String())
}

// SayTimeOfDay returns the time of day of t in twelve hours: 晚上8点30分, 8:30 PM.
func SayTimeOfDay(t time.Time, lang text.Lang) string {
	if lang != text.Chinese {
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
	hour := (t.Hour()+11)%12 + 1
	if t.Hour() == 0 {
		hour = 0
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
	if n != 1 {
		en += "s"
	}
	return strconv.Itoa(n) + lang.Pick(zh, " "+en)
}
