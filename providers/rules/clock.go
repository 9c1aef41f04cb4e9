package rules

import (
	"fmt"
	"strconv"
	"time"
)

// spokenTime returns the time of day as it is said.
func spokenTime(t time.Time, lang string) string {
	if lang == "en" {
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

func spokenDate(t time.Time, lang string) string {
	if lang == "en" {
		return t.Format("January 2")
	}
	return fmt.Sprintf("%d月%d日", t.Month(), t.Day())
}

func weekday(t time.Time, lang string) string {
	if lang == "en" {
		return t.Weekday().String()
	}
	return "星期" + []string{"日", "一", "二", "三", "四", "五", "六"}[t.Weekday()]
}

// spokenLength returns a timer's length as it is said.
func spokenLength(d time.Duration, lang string) string {
	n, zh, en := int(d/time.Second), "秒", "second"
	switch {
	case d%time.Hour == 0:
		n, zh, en = int(d/time.Hour), "小时", "hour"
	case d%time.Minute == 0:
		n, zh, en = int(d/time.Minute), "分钟", "minute"
	}
	if lang != "en" {
		return strconv.Itoa(n) + zh
	}
	if n != 1 {
		en += "s"
	}
	return strconv.Itoa(n) + " " + en
}
