package spoken

import (
	"fmt"
	"strings"
)

// dayPart is a part of the day, which tells 7 in the morning from 7 in the evening.
type dayPart int

const (
	wholeDay dayPart = iota
	earlyHours
	morning
	noon
	afternoon
	evening
	night
)

// clock is a time of day that was said.
type clock struct {
	known                bool
	hour, minute, second int
	exact                bool // on the 24 hour clock: 07:00
	part                 dayPart
	usual                int // the hour of the part when none is said
}

// read reads a part of the day or a time, if one comes next.
func (k *clock) read(c *cursor) {
	if k.readPart(c) || k.known {
		return
	}
	before := *c
	if !k.english(c) {
		*c = before
		if !k.digits(c) {
			*c = before
		}
	}
	k.readPart(c)
}

// readPart reads 早上, in the morning, pm and the like.
func (k *clock) readPart(c *cursor) bool {
	before := *c
	c.skip(" ", "in the ", "at ")
	part, usual := c.part()
	if part == wholeDay || !k.add(part) {
		*c = before
		return false
	}
	if k.usual != 12 { // noon and midnight say more than the part of the day that they are in
		k.usual = usual
	}
	return true
}

// part reads the words for a part of the day, with the hour that is meant when none is said.
func (c *cursor) part() (part dayPart, usual int) {
	for _, p := range [...]struct {
		part  dayPart
		usual int
		words []string
	}{
		{earlyHours, 5, []string{"凌晨", "后半夜"}},
		{morning, 8, []string{"早上", "早晨", "清晨", "清早", "上午", "大清早", "一大早", "一早", "早", "morning", "mornings", "a.m.", "a.m", "am"}},
		{noon, 12, []string{"中午", "正午", "noon", "midday"}},
		{afternoon, 3, []string{"下午", "午后", "afternoon", "afternoons", "p.m.", "p.m", "pm"}},
		{evening, 6, []string{"傍晚", "黄昏"}},
		{evening, 8, []string{"晚上", "夜晚", "晚", "evening", "evenings"}},
		{night, 12, []string{"午夜", "半夜", "midnight"}},
		{night, 10, []string{"深夜", "夜里", "night", "nights"}},
	} {
		if c.take(p.words...) {
			return p.part, p.usual
		}
	}
	return wholeDay, 0
}

// add joins a part of the day with one that was said before: 11 pm tonight,
// tomorrow morning at 7 am, 今晚凌晨一点. It reports whether they go together.
func (k *clock) add(part dayPart) bool {
	early, late := min(k.part, part), max(k.part, part)
	switch {
	case early == wholeDay, early == late:
		k.part = late
	case late <= morning: // both before noon
	case early >= noon && (k.part == afternoon || part == afternoon):
		k.part = afternoon
	case early >= noon:
		k.part = part
	case late >= evening && (early == earlyHours || k.known && k.hour%12 < 6):
		k.part = night // after midnight
	default:
		return false
	}
	return true
}

// digits reads 7点, 七点半, 七点一刻, 七点零五分, 19:30, 19:30:15, 7, seven thirty, seven oh five, 7 o'clock.
func (k *clock) digits(c *cursor) bool {
	if c.take("差") {
		return k.short(c)
	}
	wide := len(c.rest) >= 2 && c.rest[0] == '0' && c.rest[1] >= '0' && c.rest[1] <= '9'
	words := isLetter((c.rest + " ")[0])
	hour, ok := c.number()
	if !ok || hour > 24 {
		return false
	}
	k.known, k.hour = true, hour
	switch {
	case c.take(":"):
		k.exact = wide
		if k.minute, ok = c.number(); !ok {
			return false
		}
		if c.take(":") {
			k.second, ok = c.number()
			k.exact = true
		}
		return ok
	case c.take("点钟", "点整", "点", "时"):
		return k.chineseMinutes(c)
	case c.take(" o'clock", " oclock"):
		return true
	}
	before := *c
	if c.skip(" "); words {
		c.take("-") // seven-thirty, but 12-25 is no time
	}
	oh := c.take("oh ", "oh-")
	if minute, ok := c.number(); ok && (oh && minute > 0 || minute >= 10) && minute < 60 {
		k.minute = minute
		return true
	}
	*c = before
	return true
}

// short reads 五分八点 and 一刻八点, after 差: minutes before an hour.
func (k *clock) short(c *cursor) bool {
	minutes, ok := c.minutes()
	if !ok {
		return false
	}
	hour, ok := c.number()
	if !ok || hour > 24 || !c.take("点钟", "点整", "点") {
		return false
	}
	k.known, k.hour, k.minute = true, hourBefore(hour), 60-minutes
	return true
}

// minutes reads 五分, 十分钟 and 一刻, at least one minute.
func (c *cursor) minutes() (int, bool) {
	if c.take("一刻钟", "一刻") {
		return 15, true
	}
	minutes, ok := c.number()
	return minutes, ok && minutes > 0 && minutes < 60 && c.take("分钟", "分")
}

// hourBefore is the hour before another, on the clock it is said by.
func hourBefore(hour int) int {
	switch {
	case hour == 0:
		return 23
	case hour > 12:
		return hour - 1
	}
	return (hour+10)%12 + 1
}

func (k *clock) chineseMinutes(c *cursor) bool {
	for i, part := range [...]string{"一刻", "半", "三刻"} {
		if c.take(part) {
			k.minute = 15 * (i + 1)
			return true
		}
	}
	if c.take("差") {
		minutes, ok := c.minutes()
		k.hour, k.minute = hourBefore(k.hour), 60-minutes
		return ok
	}
	c.take("过")
	if minute, ok := c.number(); ok {
		k.minute = minute
		c.take("分钟", "分")
	}
	before := *c
	if second, ok := c.number(); ok && c.take("秒") {
		k.second = second
	} else {
		*c = before
	}
	return true
}

// english reads half past seven, half seven and quarter to eight.
func (k *clock) english(c *cursor) bool {
	minute, to := 0, false
	switch {
	case c.take("half past "), !strings.HasPrefix(c.rest, "half a") && c.take("half "): // but half an hour is no time
		minute = 30
	case c.take("a quarter past ", "quarter past "):
		minute = 15
	case c.take("a quarter to ", "quarter to "):
		minute, to = 45, true
	default:
		n, ok := c.number()
		if !ok || n >= 60 {
			return false
		}
		c.take(" minutes")
		switch {
		case c.take(" past "):
			minute = n
		case c.take(" to "):
			minute, to = 60-n, true
		default:
			return false
		}
	}
	hour, ok := c.number()
	switch {
	case ok && hour <= 24:
	case c.take("midnight") && k.add(night), c.take("noon", "midday") && k.add(noon):
		hour = 12
	default:
		return false
	}
	if to && minute > 0 {
		hour = hourBefore(hour)
	}
	k.known, k.hour, k.minute = true, hour, minute%60
	c.take(" o'clock")
	return true
}

// hour24 is the hour on the 24 hour clock; 24 and more are of the next day.
func (k clock) hour24() (int, error) {
	if k.minute > 59 || k.second > 59 || k.hour > 24 || (k.hour == 24 && k.minute > 0) {
		return 0, fmt.Errorf("%d:%02d is no time of day", k.hour, k.minute)
	}
	h := k.hour
	switch {
	case h > 12:
	case k.part == earlyHours || k.part == morning:
		h %= 12
	case k.part == noon && h < 11, k.part == afternoon && h < 12, k.part == evening && h >= 4 && h < 12, k.part == night && h >= 6 && h < 12:
		h += 12
	case k.part == evening, k.part == night:
		h = h%12 + 24 // after midnight
	}
	return h, nil
}
