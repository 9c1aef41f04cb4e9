package spoken

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// MaxDuration is the longest length of time that is read.
const MaxDuration = 366 * 24 * time.Hour

// ErrTooLong says that a length of time is over MaxDuration.
var ErrTooLong = errors.New("it is longer than a year")

// Duration reads a length of time: 10分钟, 一个半小时, 一刻钟, 2h30m, PT10M, an hour and a half, with
// 后 or "in" and the like around it. It is whole seconds, more than 0 and at most MaxDuration. An
// error says where it is not understood.
func Duration(s string) (time.Duration, error) {
	c := &cursor{bare(fold(s))}
	c.skip(" ", "in ", "after ", "for ", "再过", "过", "等")
	c.rest = strings.TrimSpace(c.rest)
	for _, end := range []string{"之后", "以后", "后", " later", " from now", " from today"} {
		c.rest = strings.TrimSuffix(c.rest, end)
	}
	if iso, ok := strings.CutPrefix(c.rest, "p"); ok && iso != "" && (iso[0] == 't' || iso[0] >= '0' && iso[0] <= '9') {
		c.rest = strings.Replace(iso, "t", "", 1)
	}
	var total float64 // in seconds
	parts := 0
	for {
		c.skip(" ", ",", "and ", "零", "又")
		if c.rest == "" {
			break
		}
		seconds, ok := c.duration()
		if !ok {
			return 0, fmt.Errorf("%q is no length of time such as 10分钟 or 2h30m", text.Cut(c.rest, maxQuoted))
		}
		total += seconds
		parts++
		if total > MaxDuration.Seconds() {
			return 0, ErrTooLong
		}
	}
	d := time.Duration(total+0.5) * time.Second
	if parts == 0 || d <= 0 {
		return 0, errors.New("it is no length of time such as 10分钟 or 2h30m")
	}
	return d, nil
}

// duration reads one number with its unit, in seconds.
func (c *cursor) duration() (float64, bool) {
	amount, ok := 0.0, false
	switch {
	case c.take("a quarter of an hour", "quarter of an hour"):
		return 900, true
	case c.take("three quarters of an hour"):
		return 2700, true
	}
	if c.take("半个", "半", "half an ", "half a ", "half ") {
		amount, ok = 0.5, true
	} else if c.take("a couple of ", "couple of ") {
		amount, ok = 2, true
	} else if amount, ok = c.decimal(); ok {
		c.skip(" ")
		c.take("个")
		if c.take("半", "and a half ") {
			amount += 0.5
		}
	}
	if !ok {
		return 0, false
	}
	c.skip(" ", "-")
	unit := c.unit()
	if unit == 0 {
		return 0, false
	}
	if c.take("半钟", "半", " and a half") {
		amount += 0.5
	}
	return amount * unit.Seconds(), true
}

// unit reads a unit of time, 0 for none.
func (c *cursor) unit() time.Duration {
	for _, u := range [...]struct {
		length time.Duration
		words  []string
	}{
		{time.Second, []string{"秒钟", "秒", "seconds", "second", "secs", "sec", "s"}},
		{time.Minute, []string{"分钟", "分", "minutes", "minute", "mins", "min", "m"}},
		{time.Hour, []string{"小时", "钟头", "hours", "hour", "hrs", "hr", "h"}},
		{15 * time.Minute, []string{"刻钟"}},
		{24 * time.Hour, []string{"天", "days", "day", "d"}},
		{7 * 24 * time.Hour, []string{"周", "星期", "礼拜", "weeks", "week", "w"}},
	} {
		if c.take(u.words...) {
			return u.length
		}
	}
	return 0
}

// maxQuoted is the number of bytes that an error quotes of a text that is not understood.
const maxQuoted = 120

// Shift reads a length of time by which something is moved: 5 minutes, +10分钟; with a minus in front, or 提前, to an earlier time.
func Shift(s string) (time.Duration, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	length := s
	for _, sign := range []string{"minus ", "plus ", "提前", "推迟", "减", "加", "-", "−", "+"} {
		length = strings.TrimSpace(strings.TrimPrefix(length, sign))
	}
	d, err := Duration(length)
	if sign := strings.TrimSuffix(s, length); strings.Contains(sign, "minus") || strings.ContainsAny(sign, "-−减") || strings.Contains(sign, "提前") {
		d = -d
	}
	return d, err
}
