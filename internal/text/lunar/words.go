package lunar

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// Read reads year-month-day of the lunar calendar, in numbers (2025-r6-1,
// 8-15) or as it is said (闰六月初一, 大年三十); without a year, it is the next such
// day from today on.
func Read(text string, today time.Time) (Date, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "农历")
	for _, day := range [][2]string{{"大年三十", "12-30"}, {"年三十", "12-30"}, {"除夕", "12-30"}, {"大年初一", "1-1"}} {
		text = strings.ReplaceAll(text, day[0], day[1])
	}
	text = strings.NewReplacer("闰", "r", "年", "-", "月", "-", "日", "", "号", "", "正", "1", "冬", "11", "腊", "12", "初", "", "廿", "二十").Replace(text)
	parts := strings.Split(text, "-")
	numbers := make([]int, len(parts))
	leap := false
	for i, part := range parts {
		if rest, ok := strings.CutPrefix(part, "r"); ok && i == len(parts)-2 {
			part, leap = rest, true
		}
		n, ok := spoken.Number(part)
		if !ok {
			return Date{}, ErrRange
		}
		numbers[i] = n
	}
	switch len(numbers) {
	case 3:
		return lastDay(Date{Year: numbers[0], Month: numbers[1], Leap: leap, Day: numbers[2]}), nil
	case 2:
		return nextLunar(Date{Month: numbers[0], Leap: leap, Day: numbers[1]}, today)
	}
	return Date{}, ErrRange
}

// lastDay is New Year's Eve where it is asked for as the 30th and that year's
// last month has only 29 days, as every year from 2025 to 2029.
func lastDay(d Date) Date {
	if _, err := d.Solar(); err != nil && d.Month == 12 && !d.Leap && d.Day == 30 {
		d.Day = 29
	}
	return d
}

// nextLunar is the next day from today on with the month and day of d.
func nextLunar(d Date, today time.Time) (Date, error) {
	now, err := Of(today)
	if err != nil {
		return d, err
	}
	for d.Year = now.Year; d.Year <= lastYear; d.Year++ {
		next := lastDay(d)
		if date, err := next.Solar(); err == nil && !date.Before(midnight(today)) {
			return next, nil
		}
	}
	return d, ErrRange
}

// isNamed reports whether a day is the festival or the solar term of a Chinese name.
func (all names) isNamed(day time.Time, called string) bool {
	today, _ := all.termOf(day)
	return slices.ContainsFunc(append(all.festivals(day), today), func(n name) bool { return n.zh != "" && called == n.zh })
}

// Say returns a day as both calendars have it, with its festivals and solar
// terms. The error is [ErrRange].
func Say(date time.Time, lang text.Lang) (string, error) {
	d, err := Of(date)
	if err != nil {
		return "", err
	}
	month, animal, all := fmt.Sprintf("month %d", d.Month), d.zodiac(), readNames()
	if d.Leap {
		month = "leap " + month
	}
	parts := []string{
		lang.Pick(date.Format("公历2006年1月2日")+" "+spoken.SayWeekday(date, text.Chinese), date.Format("Monday, 2 January 2006")),
		lang.Pick("农历"+d.stemBranch()+"年（"+animal.zh+"年）"+d.monthName()+d.dayName(),
			fmt.Sprintf("in the Chinese calendar day %d of %s of the year of the %s (%v)", d.Day, month, animal.en, d)),
	}
	for _, f := range all.festivals(date) {
		parts = append(parts, lang.Pick(f.zh, f.en))
	}
	today, next := all.termOf(date)
	if today.zh != "" {
		parts = append(parts, lang.Pick("今日"+today.zh, "the solar term "+today.en+" ("+today.zh+") begins"))
	}
	if next.zh != "" {
		parts = append(parts, lang.Pick("下一个节气是"+next.date.Format("1月2日")+"的"+next.zh,
			"the next solar term is "+next.en+" ("+next.zh+") on "+next.date.Format("2 January")))
	}
	return strings.Join(parts, lang.Pick("，", "; ")), nil
}
