package spoken

import (
	"fmt"
	"strings"
	"time"
)

// day is a day that was said.
type day struct {
	known                   bool
	date                    time.Time // any time of it
	today                   bool
	weekly, monthly, yearly bool // when it has passed, the next one is meant
}

// read reads a day, if one comes next, and reports whether it did.
func (d *day) read(c *cursor, now time.Time) bool {
	if d.known {
		return false
	}
	in := func(days int) bool {
		d.known, d.date, d.today = true, now.AddDate(0, 0, days), days == 0
		return true
	}
	switch {
	case c.take("大后天"):
		return in(3)
	case c.take("后天", "day after tomorrow"):
		return in(2)
	case c.take("明天", "明日", "明儿", "tomorrow"):
		return in(1)
	case strings.HasPrefix(c.rest, "明早") || strings.HasPrefix(c.rest, "明晚"):
		c.take("明")
		return in(1)
	case c.take("今天", "今日", "今儿", "today"):
		return in(0)
	case strings.HasPrefix(c.rest, "今早") || strings.HasPrefix(c.rest, "今晚"):
		c.take("今")
		return in(0)
	case strings.HasPrefix(c.rest, "tonight"):
		c.rest = "night" + strings.TrimPrefix(c.rest, "tonight")
		return in(0)
	}
	before := *c
	for _, form := range []func(*cursor, time.Time) bool{d.weekday, d.written, d.chineseDate, d.englishDate} {
		if form(c, now) {
			return true
		}
		*c, *d = before, day{}
	}
	return false
}

// weekday reads 周一, 下周一, 星期天, monday, next monday.
func (d *day) weekday(c *cursor, now time.Time) bool {
	weeks := 0
	for c.take("下个", "下") {
		weeks++
	}
	c.take("这个", "这", "本", "this ")
	if c.take("next ") {
		weeks++
	}
	if c.take("周", "星期", "礼拜") {
		i := strings.IndexAny(c.rest, "一二三四五六日天")
		if i != 0 {
			return false
		}
		for n, w := range []string{"一", "二", "三", "四", "五", "六"} {
			if c.take(w) {
				return d.onWeekday(n, weeks, now)
			}
		}
		c.take("日", "天")
		return d.onWeekday(6, weeks, now)
	}
	for n := range 7 {
		name := strings.ToLower(time.Weekday((n + 1) % 7).String())
		if c.take(name, name[:3]) {
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
	d.known, d.date, d.weekly = true, now.AddDate(0, 0, days+7*weeks), weeks == 0
	return weeks <= 4
}

// written reads 2026-11-25 and 2026/11/25.
func (d *day) written(c *cursor, now time.Time) bool {
	if len(c.rest) < 8 || c.rest[0] < '0' || c.rest[0] > '9' {
		return false
	}
	year, ok := c.number()
	if !ok || year < 1000 || !c.take("-", "/") {
		return false
	}
	month, ok := c.number()
	if !ok || !c.take("-", "/") {
		return false
	}
	n, ok := c.number()
	return ok && d.on(year, month, n, now)
}

// chineseDate reads 2026年11月25日, 11月25号, 25号.
func (d *day) chineseDate(c *cursor, now time.Time) bool {
	n, ok := c.number()
	if !ok {
		return false
	}
	year, month := now.Year(), int(now.Month())
	d.monthly = true
	if c.take("年") {
		year = n
		if n, ok = c.number(); !ok {
			return false
		}
	}
	if c.take("月份", "月") {
		month = n
		d.monthly, d.yearly = false, year == now.Year()
		if n, ok = c.number(); !ok {
			return false
		}
		c.take("日", "号")
	} else if !c.take("日", "号") {
		return false
	}
	return d.on(year, month, n, now)
}

// englishDate reads november 25, nov 25th 2027, 25 november, the 25th of november.
func (d *day) englishDate(c *cursor, now time.Time) bool {
	n, numbered := c.number()
	if numbered {
		c.take("st", "nd", "rd", "th")
		c.skip(" ", "of ")
	}
	month := c.month()
	if month == 0 {
		return false
	}
	if !numbered {
		c.skip(" ", "the ", ".")
		var ok bool
		if n, ok = c.number(); !ok {
			return false
		}
		c.take("st", "nd", "rd", "th")
	}
	year := now.Year()
	d.yearly = true
	before := *c
	c.skip(" ", ",")
	if y, ok := c.number(); ok && y >= 2000 && y < 3000 {
		year, d.yearly = y, false
	} else {
		*c = before
	}
	return d.on(year, month, n, now)
}

func (c *cursor) month() int {
	for m := time.January; m <= time.December; m++ {
		name := strings.ToLower(m.String())
		if c.take(name, name[:3], name[:min(4, len(name))]) {
			return int(m)
		}
	}
	return 0
}

// on is the date, if there is such a day.
func (d *day) on(year, month, n int, now time.Time) bool {
	if year < 1 || year > 9999 || month < 1 || month > 12 || n < 1 || n > 31 {
		return false
	}
	date := time.Date(year, time.Month(month), n, 12, 0, 0, 0, now.Location())
	if date.Day() != n {
		return false
	}
	d.known, d.date = true, date
	return true
}

// Day reads a day: 2026-02-17, 明天, 下周一, 11月25日, november 25 2026. It may have
// passed; one without a year is of this year.
func Day(text string, now time.Time) (time.Time, error) {
	c := &cursor{fold(text)}
	c.skip(" ", "on ", "the ")
	var d day
	if !d.read(c, now) || strings.Trim(c.rest, " ") != "" {
		return time.Time{}, fmt.Errorf("%q is no day such as 2026-02-17 or 明天", clip(text))
	}
	return d.date, nil
}
