package rules

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/city"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/spoken"
)

// timeIn says what time it is somewhere else.
func (in intent) timeIn(now time.Time, lang text.Lang) (string, bool) {
	words := in.slots["city"]
	for _, lead := range []string{"over in ", "in ", "at ", "over "} {
		words = strings.TrimPrefix(words, lead)
	}
	for _, end := range []string{"那边", "那里", "那儿", "当地", "时间", "的", " right", " local"} {
		words = strings.TrimSuffix(words, end)
	}
	place, ok := city.Find(words)
	if cut := strings.LastIndexByte(words, ' '); !ok && cut > 0 {
		place, ok = city.Find(words[:cut]) // dallas texas
	}
	if !ok {
		return "", false
	}
	said := ""
	for _, l := range place.Times(now, lang) {
		name, clock := cmp.Or(l.City, place.Name(lang)), spoken.SayTimeOfDay(l.Time, lang)
		switch date := l.Time.Format(time.DateOnly); {
		case date < now.Format(time.DateOnly):
			clock = lang.Pick("昨天"+clock, clock+" yesterday")
		case date > now.Format(time.DateOnly):
			clock = lang.Pick("明天"+clock, clock+" tomorrow")
		}
		said = text.Join(said, lang.Pick(name+"现在是"+clock+"。", "In "+name+" it is "+clock+"."))
	}
	return said, said != ""
}

// untilAt says how long it is until a time of day.
func (in intent) untilAt(now time.Time, lang text.Lang) (string, bool) {
	words := in.asked.when
	due, rule, err := spoken.When(words, now)
	if err != nil || rule != "" {
		return "", false
	}
	if _, err := spoken.Duration(words); err == nil {
		return "", false
	}
	if _, day := lunar.Find(trimDay(words), now); day {
		return "", false // how many days, another rule says
	}
	left, clock := spoken.SayDuration(due.Sub(now).Round(time.Minute), lang), spoken.SayTimeOfDay(due, lang)
	if due.YearDay() != now.YearDay() {
		clock = lang.Pick("明天"+clock, clock+" tomorrow")
	}
	return lang.Pick("离"+clock+"还有"+left+"。", "It is "+left+" until "+clock+"."), due.Sub(now) < 48*time.Hour
}

// yearOf returns the year of the usual calendar that is asked for: this one where none was said.
func (in intent) yearOf(now time.Time) (int, bool) {
	switch words := strings.TrimSpace(strings.TrimSuffix(in.slots["year"], "年")); words {
	case "", "this year", "今":
		return now.Year(), true
	case "next year", "明":
		return now.Year() + 1, true
	case "last year", "去":
		return now.Year() - 1, true
	case "后":
		return now.Year() + 2, true
	default:
		year, ok := readYear(words)
		return year, ok && year > 1582 && year < 10000 // of the Gregorian calendar
	}
}

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// leap says whether a year is a leap year, or which one is next or was last.
func (in intent) leap(now time.Time, lang text.Lang) (string, bool) {
	year, ok := in.yearOf(now)
	if step := map[string]int{"next": 1, "last": -1}[in.about]; step != 0 {
		for year = now.Year() + step; !isLeap(year); year += step {
		}
		return lang.Pick(fmt.Sprintf("%d年。", year), fmt.Sprintf("%d.", year)), true
	}
	if isLeap(year) {
		return lang.Pick(fmt.Sprintf("%d年是闰年。", year), fmt.Sprintf("Yes, %d is a leap year.", year)), ok
	}
	return lang.Pick(fmt.Sprintf("%d年不是闰年。", year), fmt.Sprintf("No, %d is not a leap year.", year)), ok
}

// daysIn says how many days a month or a year has, or has left.
func (in intent) daysIn(now time.Time, lang text.Lang) (string, bool) {
	words := strings.TrimPrefix(strings.TrimSpace(in.slots["day"]), "the month of ")
	if in.about == "left" {
		return in.daysLeft(words, now, lang)
	}
	if words == "" {
		year, ok := in.yearOf(now)
		days := 365
		if isLeap(year) {
			days++
		}
		return lang.Pick(fmt.Sprintf("%d年有%d天。", year, days), fmt.Sprintf("%d has %d days.", year, days)), ok
	}
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	switch words {
	case "this month", "the month", "这个月", "本月":
	case "next month", "下个月", "下月":
		first = first.AddDate(0, 1, 0)
	case "last month", "上个月":
		first = first.AddDate(0, -1, 0)
	default:
		words = strings.TrimSuffix(strings.TrimSuffix(words, "份"), "里")
		day, ok := lunar.Find(words+" 1st", now)
		if !ok {
			day, ok = lunar.Find(words+"1号", now)
		}
		if !ok || day.Date.Day() != 1 {
			return "", false
		}
		first = day.Date
	}
	last := first.AddDate(0, 1, -1)
	return lang.Pick(fmt.Sprintf("%d月有%d天。", last.Month(), last.Day()), fmt.Sprintf("%s has %d days.", last.Month(), last.Day())), true
}

// daysLeft says how many days are left of this month or this year, today not counted.
func (in intent) daysLeft(words string, now time.Time, lang text.Lang) (string, bool) {
	last := time.Date(now.Year(), 12, 31, 0, 0, 0, 0, time.UTC)
	switch words {
	case "this month", "the month", "这个月", "本月":
		last = time.Date(now.Year(), now.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	case "", "this year", "the year", "今年", "这一年":
		if year, ok := in.yearOf(now); !ok || year != now.Year() {
			return "", false
		}
	default:
		return "", false
	}
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	n := int(last.Sub(today).Hours() / 24)
	if n == 1 {
		return lang.Pick("还剩1天。", "There is 1 day left."), true
	}
	return lang.Pick(fmt.Sprintf("还剩%d天。", n), fmt.Sprintf("There are %d days left.", n)), true
}

// between says how many days are between two.
func (in intent) between(now time.Time, lang text.Lang) (string, bool) {
	one, ok := lunar.Find(trimDay(in.slots["day"]), now)
	two, fine := lunar.Find(trimDay(in.slots["day2"]), now)
	if !ok || !fine {
		return "", false
	}
	if two.Date.Before(one.Date) {
		two.Date = two.Date.AddDate(1, 0, 0)
	}
	length := spoken.SayDuration(two.Date.Sub(one.Date), lang)
	return lang.Pick("相差"+length+"。", "There are "+length+" between them."), true
}

// age says how old somebody is who was born in a year.
func (in intent) age(now time.Time, lang text.Lang) (string, bool) {
	year, ok := in.year(now)
	if !ok || year > now.Year() {
		return "", false
	}
	return lang.Pick(fmt.Sprintf("今年%d岁。", now.Year()-year), fmt.Sprintf("That makes %d years this year.", now.Year()-year)), true
}
