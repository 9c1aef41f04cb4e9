package spoken

import "fmt"

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

// usualHour is the hour meant when none is said.
func (p dayPart) usualHour() int {
	return [...]int{wholeDay: 9, earlyHours: 5, morning: 8, noon: 12, afternoon: 3, evening: 8, night: 10}[p]
}

// clock is a time of day that was said.
type clock struct {
	known                bool
	hour, minute, second int
	exact                bool // on the 24 hour clock: 07:00
	part                 dayPart
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
	part := wholeDay
	switch {
	case c.take("凌晨"):
		part = earlyHours
	case c.take("早上", "早晨", "清晨", "上午", "大清早", "早", "morning", "a.m.", "am"):
		part = morning
	case c.take("中午", "正午", "noon"):
		part = noon
	case c.take("下午", "午后", "afternoon", "p.m.", "pm"):
		part = afternoon
	case c.take("傍晚", "晚上", "夜晚", "晚", "evening"):
		part = evening
	case c.take("半夜", "深夜", "夜里", "night"):
		part = night
	case c.take("午夜", "midnight"):
		if part = night; !k.known {
			k.known, k.hour = true, 12
		}
	}
	if part == wholeDay || k.part != wholeDay {
		*c = before
		return false
	}
	k.part = part
	return true
}

// digits reads 7点, 七点半, 七点一刻, 七点零五分, 19:30, 19:30:15, 7, seven thirty, 7 o'clock.
func (k *clock) digits(c *cursor) bool {
	wide := len(c.rest) >= 2 && c.rest[0] == '0' && c.rest[1] >= '0' && c.rest[1] <= '9'
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
		}
		return ok
	case c.take("点钟", "点整", "点", "时"):
		return k.chineseMinutes(c)
	case c.take(" o'clock", " oclock"):
		return true
	}
	before := *c
	c.skip(" ", "-")
	if minute, ok := c.number(); ok && minute >= 10 && minute < 60 {
		k.minute = minute
		return true
	}
	*c = before
	return true
}

func (k *clock) chineseMinutes(c *cursor) bool {
	switch {
	case c.take("半"):
		k.minute = 30
		return true
	case c.take("一刻"):
		k.minute = 15
		return true
	case c.take("三刻"):
		k.minute = 45
		return true
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

// english reads half past seven and quarter to eight.
func (k *clock) english(c *cursor) bool {
	minute, to := 0, false
	switch {
	case c.take("half past "):
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
	if !ok || hour > 24 {
		return false
	}
	if to {
		hour = (hour + 11) % 12
	}
	k.known, k.hour, k.minute = true, hour, minute%60
	c.take(" o'clock")
	return true
}

// hours is the hour on the 24 hour clock; 24 and more are of the next day.
func (k clock) hours() ([]int, error) {
	if k.minute > 59 || k.second > 59 || k.hour > 24 || (k.hour == 24 && k.minute > 0) {
		return nil, fmt.Errorf("%d:%02d is no time of day", k.hour, k.minute)
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
	return []int{h}, nil
}
