package spoken

import "time"

// past reads a day that was: 昨天, 上周五, 三天前, yesterday, last friday, two days ago.
func (d *day) past(c *cursor, now time.Time) bool {
	for i, words := range [...][]string{
		{"昨天", "昨日", "昨儿", "yesterday"}, {"大前天"}, {"前天", "day before yesterday"},
	} {
		if c.take(words...) {
			return d.in([]int{-1, -3, -2}[i], now)
		}
	}
	before := *c
	if d.ago(c, now) || d.lastWeekday(c, now) {
		return true
	}
	*c, *d = before, day{}
	return false
}

// ago reads 三天前, 两周以前, 3 days ago, a week ago.
func (d *day) ago(c *cursor, now time.Time) bool {
	before := *c
	n, ok := c.number()
	if !ok {
		return false
	}
	c.skip(" ", "个")
	switch {
	case c.take("天", "日", "days", "day"):
	case c.take("周", "星期", "礼拜", "weeks", "week"):
		n *= 7
	default:
		*c = before
		return false
	}
	if n > 40_000 || !c.take("之前", "以前", "前", " ago") {
		*c = before
		return false
	}
	return d.in(-n, now)
}

// lastWeekday reads 上周五, which is in the week before this, and last friday, the one before today.
func (d *day) lastWeekday(c *cursor, now time.Time) bool {
	chinese := c.take("上个", "上")
	if !chinese && !c.take("last ") {
		return false
	}
	if !d.weekday(c, now) {
		return false
	}
	if this := (int(now.Weekday()) + 6) % 7; chinese && (int(d.date.Weekday())+6)%7 < this { // it stands for next week
		d.date = d.date.AddDate(0, 0, -7)
	}
	d.date = d.date.AddDate(0, 0, -7)
	return true
}
