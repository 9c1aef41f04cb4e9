package spoken

import (
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// day is a day that was said.
type day struct {
	known                   bool
	date                    time.Time // any time of it
	today                   bool
	named                   bool // by its day of the week
	later                   bool // counted from now: 三天后
	weekly, monthly, yearly bool // when it has passed, the next one is meant
}

// read reads a day, if one comes next, and reports whether it did.
func (d *day) read(c *cursor, now time.Time) bool {
	if d.known {
		return d.again(c, now)
	}
	for i, words := range [...][]string{
		{"今天", "今日", "今儿", "today"}, {"明天", "明日", "明儿", "tomorrow"}, {"后天", "day after tomorrow"}, {"大后天"},
	} {
		if c.take(words...) {
			return d.in(i, now)
		}
	}
	switch {
	case strings.HasPrefix(c.rest, "明早") || strings.HasPrefix(c.rest, "明晚"):
		c.take("明")
		return d.in(1, now)
	case strings.HasPrefix(c.rest, "今早") || strings.HasPrefix(c.rest, "今晚"):
		c.take("今")
		return d.in(0, now)
	case thisPart(c):
		return d.in(0, now)
	case strings.HasPrefix(c.rest, "tonight"):
		c.rest = strings.TrimPrefix(c.rest, "to")
		return d.in(0, now)
	}
	before := *c
	for _, form := range []func(*cursor, time.Time) bool{d.weekday, d.written, d.fromNow, d.chineseDate, d.englishDate} {
		if form(c, now) {
			return true
		}
		*c, *d = before, day{}
	}
	return false
}

// in is the day that many days from now.
func (d *day) in(days int, now time.Time) bool {
	d.known, d.date, d.today = true, noonIn(now, days), days == 0
	return true
}

// again reads a second day, which must agree with the first: 11月27日星期五.
func (d *day) again(c *cursor, now time.Time) bool {
	before, other := *c, day{}
	if !other.read(c, now) || d.named == other.named {
		*c = before
		return false
	}
	named, dated := d, &other
	if other.named {
		named, dated = dated, named
	}
	same := named.date.Equal(dated.date)
	if named.weekly {
		same = named.date.Weekday() == dated.date.Weekday()
	}
	if !same {
		*c = before
		return false
	}
	*d = *dated
	return true
}

// noonIn is noon of the day that many days from now: an hour that every day has.
func noonIn(now time.Time, days int) time.Time {
	year, month, n := now.Date()
	return time.Date(year, month, n+days, 12, 0, 0, 0, now.Location())
}

// thisPart goes over the this of this morning.
func thisPart(c *cursor) bool {
	ahead := *c
	if !ahead.take("this ") {
		return false
	}
	after := ahead
	part, _ := ahead.part()
	if part != wholeDay {
		*c = after
	}
	return part != wholeDay
}

// weekday reads 周一, 下周一, 星期天, monday, next monday.
func (d *day) weekday(c *cursor, now time.Time) bool {
	weeks := 0
	for c.take("下个", "下") {
		weeks++
	}
	c.take("这个", "这", "本", "this coming ", "coming ", "this ")
	if c.take("next week on ", "next week ", "next ") {
		weeks++
	}
	if c.take("周", "星期", "礼拜") {
		for n, w := range [...]string{"一", "二", "三", "四", "五", "六", "日", "天"} {
			if c.take(w) {
				return d.onWeekday(min(n, 6), weeks, now)
			}
		}
		return false
	}
	for n := range 7 {
		name := strings.ToLower(time.Weekday((n + 1) % 7).String())
		if c.take(name, name[:3]) {
			if c.take(" next week") {
				weeks++
			}
			return d.onWeekday(n, weeks, now)
		}
	}
	return false
}

// onWeekday is the day of the week, 0 for Monday, so many weeks after this one;
// in this week the next such day is meant.
func (d *day) onWeekday(n, weeks int, now time.Time) bool {
	days := n - (int(now.Weekday())+6)%7
	if weeks == 0 && days < 0 {
		days += 7
	}
	d.known, d.named, d.date, d.weekly = true, true, noonIn(now, days+7*weeks), weeks == 0
	return weeks <= 4
}

// Day reads a day: 2026-02-17, 明天, 下周一, 11月25日, november 25 2026. It may have
// passed; one without a year is of this year, if that has it.
func Day(s string, now time.Time) (time.Time, error) {
	c := &cursor{fold(s)}
	c.skip(" ", "on ", "the ")
	var d day
	if !d.read(c, now) || strings.Trim(c.rest, " ") != "" {
		return time.Time{}, fmt.Errorf("%q is no day such as 2026-02-17 or 明天", text.Cut(s, maxQuoted))
	}
	return d.date, nil
}
