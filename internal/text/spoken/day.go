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
	absent                  bool      // there is no such day: February 30
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
	same := dated.absent || named.date.Equal(dated.date)
	if named.weekly && !dated.absent {
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
// passed (昨天, last friday); one without a year is of this year, if that has it.
func Day(s string, now time.Time) (time.Time, error) {
	c := &cursor{fold(s)}
	c.skip(" ", "on ", "the ")
	var d day
	if !d.past(c, now) && !d.read(c, now) || strings.Trim(c.rest, " ") != "" {
		return time.Time{}, fmt.Errorf("%q is no day such as 2026-02-17 or 明天", text.Cut(s, maxQuoted))
	}
	if d.absent {
		return time.Time{}, ErrNoDate
	}
	return d.date, nil
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

// on is the date, which may be one that no such month has; of a day without a year or a month the
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
		if d.yearly {
			year++
		} else if d.monthly {
			month++
		}
	}
	d.known, d.absent = true, true
	return true
}
