package lunar

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text/spoken"
)

// Days that are said by others: a week from friday, the day after christmas, the last day of the month, the first monday of december.
var (
	afterDay   = regexp.MustCompile(`^(?:in )?(.+?) (from|after|before|past|prior to|following) (.+)$`)
	nextTo     = regexp.MustCompile(`^(?:the )?day (after|before|following) (.+)$`)
	weekOn     = regexp.MustCompile(`^(a|one|two|three|<?[1-9]>?) weeks? (?:on )?(today|tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday)$`)
	sameDay    = regexp.MustCompile(`^(?:(?:today|this day|this time|the same day) (?:in )?(next|last) (week|month|year)|(next|last) (week|month|year) today)$`)
	endOf      = regexp.MustCompile(`^(?:the )?(?:(?:last|final) day|end) of (the|this|next|last) (month|year)$|^(month|year) end$`)
	nthWeekday = regexp.MustCompile(`^(?:the )?(first|second|third|fourth|fifth|last|1st|2nd|3rd|4th|5th) (monday|tuesday|wednesday|thursday|friday|saturday|sunday) (?:of|in) (.+)$`)
	nextMonth  = regexp.MustCompile(`^(?:the )?(.+) of (next|this|last|the) month$|^(next|this) month (?:on )?(?:the )?(.+)$`)

	zhAfter   = regexp.MustCompile(`^从?(.+?)(?:(之后|以后|后|过后|再过|起再过|往后|之前|以前|前)的?)第?(.+?)$`)
	zhNextTo  = regexp.MustCompile(`^(.+?)的?(前|后|第二|头)一?天$`)
	zhSameDay = regexp.MustCompile(`^(下个?|上个?)(周|星期|礼拜|月)的?(今天|明天|昨天)$|^(明年|去年|后年)的?今天$`)
	zhEnd     = regexp.MustCompile(`^(这个?|本|下个?|上个?|今|明|去)?(月|年)的?(?:年|月)?(底|末|最后一天)$`)
	zhNth     = regexp.MustCompile(`^(.+?月份?|这个月|本月|下个?月)的?(第一|第二|第三|第四|第五|最后一)个?(?:周|星期|礼拜)(一|二|三|四|五|六|日|天)$`)
)

// relations are the words of which one is in whatever is said by another day.
var relations = []string{" from ", " after ", " before ", " past ", "prior to", "following", " of ", " in ", "week", "month", "year", "后", "前", "再过", "往后", "底", "末", "最后", "第", "的今天", "今天", "的明天", "的昨天"}

// relative finds a day that is said by another one.
func relative(words string, now time.Time) (Day, bool) {
	words = strings.ToLower(strings.TrimSpace(words))
	if !slices.ContainsFunc(relations, func(r string) bool { return strings.Contains(words, r) }) {
		return Day{}, false
	}
	for _, form := range []func(string, time.Time) (time.Time, bool){fromDay, besideDay, weeksOn, sameAgain, monthEnd, nth, ofMonth} {
		if date, ok := form(words, now); ok {
			return Day{Date: midnight(date)}, true
		}
	}
	return Day{}, false
}

// step moves a day by a length in days, weeks, months or years.
func step(day time.Time, length string, sign int) (time.Time, bool) {
	length = strings.TrimSpace(strings.NewReplacer("<", "", ">", "").Replace(length))
	for unit, months := range map[string]int{"month": 1, "months": 1, "year": 12, "years": 12, "个月": 1, "年": 12} {
		if number, ok := strings.CutSuffix(length, unit); ok {
			number = strings.TrimSpace(number)
			n, fine := spoken.Number(number)
			if number == "a" || number == "one" {
				n, fine = 1, true
			}
			if fine && n <= 1200 {
				return day.AddDate(0, sign*n*months, 0), true
			}
		}
	}
	d, err := spoken.Duration(length)
	if err != nil || d%(24*time.Hour) != 0 {
		return day, false
	}
	return day.AddDate(0, 0, sign*int(d/(24*time.Hour))), true
}

// fromDay reads a week from friday, 圣诞节后三天.
func fromDay(words string, now time.Time) (time.Time, bool) {
	if m := afterDay.FindStringSubmatch(words); m != nil {
		if day, ok := Find(m[3], now); ok {
			sign := 1
			if m[2] == "before" || m[2] == "prior to" {
				sign = -1
			}
			return step(day.Date, m[1], sign)
		}
	}
	if m := zhAfter.FindStringSubmatch(words); m != nil {
		if day, ok := Find(m[1], now); ok {
			sign := 1
			if strings.Contains(m[2], "前") {
				sign = -1
			}
			return step(day.Date, m[3], sign)
		}
	}
	return now, false
}

// besideDay reads the day after christmas, 春节前一天.
func besideDay(words string, now time.Time) (time.Time, bool) {
	of, before := "", false
	if m := nextTo.FindStringSubmatch(words); m != nil {
		of, before = m[2], m[1] == "before"
	} else if m := zhNextTo.FindStringSubmatch(words); m != nil {
		of, before = m[1], m[2] == "前" || m[2] == "头"
	}
	if of == "" {
		return now, false
	}
	day, ok := Find(of, now)
	if before {
		return day.Date.AddDate(0, 0, -1), ok
	}
	return day.Date.AddDate(0, 0, 1), ok
}

// weeksOn reads a week today, two weeks on friday.
func weeksOn(words string, now time.Time) (time.Time, bool) {
	m := weekOn.FindStringSubmatch(words)
	if m == nil {
		return now, false
	}
	day, ok := Find(m[2], now)
	if !ok {
		return now, false
	}
	return step(day.Date, m[1]+" weeks", 1)
}

// sameAgain reads this day next week, 下个礼拜的今天.
func sameAgain(words string, now time.Time) (time.Time, bool) {
	sign, unit, day := 1, "", now
	if m := sameDay.FindStringSubmatch(words); m != nil {
		unit = m[2] + m[4]
		if m[1]+m[3] == "last" {
			sign = -1
		}
	} else if m := zhSameDay.FindStringSubmatch(words); m != nil {
		if strings.HasPrefix(m[1], "上") || m[4] == "去年" {
			sign = -1
		}
		unit = map[string]string{"周": "week", "星期": "week", "礼拜": "week", "月": "month"}[m[2]]
		if unit == "" {
			unit = "year"
		}
		day = now.AddDate(0, 0, map[string]int{"明天": 1, "昨天": -1}[m[3]])
	}
	if unit == "" {
		return now, false
	}
	return step(day, "one "+unit, sign)
}

// monthEnd reads the last day of the month, 年底.
func monthEnd(words string, now time.Time) (time.Time, bool) {
	which, unit := "", ""
	if m := endOf.FindStringSubmatch(words); m != nil {
		which, unit = m[1], m[2]+m[3]
	} else if m := zhEnd.FindStringSubmatch(words); m != nil {
		which, unit = m[1], map[string]string{"月": "month", "年": "year"}[m[2]]
	}
	if unit == "" {
		return now, false
	}
	add := 0
	switch {
	case which == "next" || strings.HasPrefix(which, "下") || which == "明":
		add = 1
	case which == "last" || strings.HasPrefix(which, "上") || which == "去":
		add = -1
	}
	if unit == "year" {
		return time.Date(now.Year()+add, time.December, 31, 0, 0, 0, 0, time.UTC), true
	}
	return time.Date(now.Year(), now.Month()+time.Month(add)+1, 0, 0, 0, 0, 0, time.UTC), true
}

// nth reads the first monday of december, 十二月的第一个星期一.
func nth(words string, now time.Time) (time.Time, bool) {
	count, weekday, month := "", time.Weekday(0), ""
	if m := nthWeekday.FindStringSubmatch(words); m != nil {
		count, month = m[1], m[3]
		for d := range time.Saturday + 1 {
			if strings.EqualFold(d.String(), m[2]) {
				weekday = d
			}
		}
	} else if m := zhNth.FindStringSubmatch(words); m != nil {
		count, month = m[2], m[1]
		weekday = time.Weekday(strings.Index("日一二三四五六", strings.Replace(m[3], "天", "日", 1)) / len("日"))
	}
	if count == "" {
		return now, false
	}
	first, ok := firstOf(month, now)
	if !ok {
		return now, false
	}
	n := map[string]int{
		"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5, "第一": 1, "第二": 2, "第三": 3, "第四": 4, "第五": 5,
	}[count]
	day := first.AddDate(0, 0, (int(weekday-first.Weekday())+7)%7+7*max(n-1, 0))
	if n == 0 {
		last := first.AddDate(0, 1, -1)
		return last.AddDate(0, 0, -(int(last.Weekday()-weekday)+7)%7), true
	}
	return day, day.Month() == first.Month()
}

// firstOf returns the first day of a month: december, next month, 明年三月; of a month that has passed, that of the next year.
func firstOf(month string, now time.Time) (time.Time, bool) {
	month = strings.TrimSuffix(strings.TrimSpace(month), "份")
	this := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	switch month {
	case "the month", "this month", "这个月", "本月":
		return this, true
	case "next month", "下个月", "下月":
		return this.AddDate(0, 1, 0), true
	}
	for _, first := range []string{month + " 1st", month + "1号"} {
		if day, err := spoken.Day(first, now); err == nil {
			if day = midnight(day); day.Before(this) {
				day = day.AddDate(1, 0, 0)
			}
			return day, true
		}
	}
	return now, false
}

// ofMonth reads the third of next month.
func ofMonth(words string, now time.Time) (time.Time, bool) {
	m := nextMonth.FindStringSubmatch(words)
	if m == nil {
		return now, false
	}
	which, day := m[2]+m[3], m[1]+m[4]
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	switch which {
	case "next":
		first = first.AddDate(0, 1, 0)
	case "last":
		first = first.AddDate(0, -1, 0)
	}
	date, err := spoken.Day(first.Month().String()+" "+strings.TrimPrefix(day, "the "), first.AddDate(0, 0, -1))
	return midnight(date), err == nil && date.Month() == first.Month()
}
