package prompts

import (
	"fmt"
	"time"
)

// Weekday names the day of t, in its own zone, in the language lang.
func Weekday(t time.Time, lang string) string {
	if language(lang) == "en" {
		return t.Weekday().String()
	}
	return "星期" + []string{"日", "一", "二", "三", "四", "五", "六"}[t.Weekday()]
}

// Date writes the date of t, in its own zone, in the language lang.
func Date(t time.Time, lang string) string {
	if language(lang) == "en" {
		return t.Format("January 2, 2006")
	}
	return fmt.Sprintf("%d年%d月%d日", t.Year(), t.Month(), t.Day())
}
