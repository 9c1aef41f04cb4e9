package spoken

import (
	"strings"
	"time"
)

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

// fromNow reads 三天后, 两周后, 一个月后, 半年后, in 3 days, a week from now. A month
// that is too short has its last day instead.
func (d *day) fromNow(c *cursor, now time.Time) bool {
	in := c.take("in ", "再过", "过")
	n, months, days := 0, 0, 0
	switch {
	case c.take("半个月"):
		days = 15
	case c.take("半年", "half a year"):
		months = 6
	default:
		var ok bool
		if n, ok = c.number(); !ok {
			return false
		}
		n = min(n, 2000) // too long in any unit
		c.skip(" ", "个")
		switch {
		case c.take("天", "日", "days", "day"):
			days = n
		case c.take("周", "星期", "礼拜", "weeks", "week"):
			days = 7 * n
		case c.take("月", "months", "month"):
			months = n
		case c.take("年", "years", "year"):
			months = 12 * n
		default:
			return false
		}
	}
	if !c.take("之后", "以后", "后", " later", " from now", " from today") && !in {
		return false
	}
	year, month, date := now.Date()
	last := time.Date(year, month+time.Month(months)+1, 0, 12, 0, 0, 0, now.Location())
	d.known, d.later = true, true
	d.date = time.Date(last.Year(), last.Month(), min(date, last.Day())+days, 12, 0, 0, 0, now.Location())
	return true
}

// chineseYear reads 2026年, 今年, 明年, and reports whether it did.
func (c *cursor) chineseYear(now time.Time) (int, bool) {
	for i, word := range [...]string{"今年", "明年", "后年"} {
		if c.take(word) {
			return now.Year() + i, true
		}
	}
	before := *c
	if year, ok := c.number(); ok && c.take("年") {
		return year, true
	}
	*c = before
	return now.Year(), false
}

// chineseDate reads 2026年11月25日, 明年1月1号, 11月25号, 下个月3号, 25号.
func (d *day) chineseDate(c *cursor, now time.Time) bool {
	year, yearSaid := c.chineseYear(now)
	month := int(now.Month())
	switch {
	case yearSaid:
	case c.take("这个月", "本月"):
		yearSaid = true
	case c.take("下个月", "下月"):
		first := time.Date(year, now.Month()+1, 1, 12, 0, 0, 0, now.Location())
		year, month, yearSaid = first.Year(), int(first.Month()), true
	}
	c.skip("的")
	d.monthly = !yearSaid
	n, ok := c.number()
	if !ok {
		return false
	}
	if c.take("月份", "月") {
		month = n
		d.monthly, d.yearly = false, !yearSaid
		if n, ok = c.number(); !ok {
			return false
		}
		c.take("日", "号")
	} else if !c.take("日", "号") {
		return false
	}
	return d.on(year, month, n, now)
}

// englishDate reads november 25, nov 25th 2027, 25 november, the 25th of
// november, december first, the 25th.
func (d *day) englishDate(c *cursor, now time.Time) bool {
	n, ordinal, numbered := c.ordinal()
	after := *c
	if numbered {
		c.skip(" ", "of ")
	}
	month := c.month()
	switch {
	case month == 0 && ordinal:
		*c, d.monthly = after, true
		return d.on(now.Year(), int(now.Month()), n, now)
	case month == 0:
		return false
	case !numbered:
		c.skip(" ", "the ", ".")
		if n, _, numbered = c.ordinal(); !numbered {
			return false
		}
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

// ordinal reads the number of a day: 25, 25th, first, twenty-fifth. ordinal says
// that it was more than a number.
func (c *cursor) ordinal() (n int, ordinal, ok bool) {
	if n, ok := c.dayWord(); ok {
		return n, true, true
	}
	n, ok = c.number()
	return n, ok && c.take("st", "nd", "rd", "th"), ok
}

// dayWord reads first to thirty-first.
func (c *cursor) dayWord() (int, bool) {
	before, tens := *c, 0
	switch {
	case c.take("twentieth"):
		return 20, true
	case c.take("thirtieth"):
		return 30, true
	case c.take("twenty"):
		tens = 20
	case c.take("thirty"):
		tens = 30
	}
	c.skip(" ", "-")
	for i, word := range [...]string{
		"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
		"twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
	} {
		if (tens == 0 || i < 9) && c.take(word) {
			return tens + i + 1, true
		}
	}
	*c = before
	return 0, false
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

// on is the date, if there is such a day; of a day without a year or a month the
// first one from there on that there is: 31号 in November, 2月29日.
func (d *day) on(year, month, n int, now time.Time) bool {
	if year < 1 || year > 9999 || month < 1 || (month > 12 && !d.monthly) || n < 1 || n > 31 {
		return false
	}
	for range 9 { // a leap year comes within eight
		date := time.Date(year, time.Month(month), n, 12, 0, 0, 0, now.Location())
		if date.Day() == n {
			d.known, d.date = true, date
			return true
		}
		switch {
		case d.yearly:
			year++
		case d.monthly:
			month++
		default:
			return false
		}
	}
	return false
}
