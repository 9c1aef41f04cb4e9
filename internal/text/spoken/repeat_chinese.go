package spoken

import (
	"fmt"
	"regexp"
	"strings"
)

// chineseEvery reads 每两天, 每隔一周的周二, 隔天, 每周一三五, 每月第二个周二, 每月, 每隔20分钟.
func (c *cursor) chineseEvery() (string, bool) {
	between := strings.HasPrefix(c.rest, "隔天") || strings.HasPrefix(c.rest, "隔周")
	if !between && !c.take("每逢", "每") {
		return "", false
	}
	between = c.take("间隔", "隔")
	interval, numbered := 1, false
	if n, ok := c.number(); ok && n > 0 {
		interval, numbered = n, true
	}
	c.skip("个")
	for _, f := range frequencies {
		if !c.take(f.words[0], f.words[1]) && (f.name != "WEEKLY" || !c.take(f.words[2])) {
			continue
		}
		if between && f.name != "MINUTELY" && f.name != "HOURLY" {
			interval++ // one is left out between two
		}
		rule := withInterval("FREQ="+f.name, interval)
		switch f.name {
		case "WEEKLY":
			return rule + c.chineseDays(numbered || between), interval <= 1000
		case "MONTHLY":
			if nth, ok := c.chineseNth(); ok {
				rule += nth
			}
		}
		c.skip("的")
		return rule, interval <= 1000
	}
	return "", false
}

// lateHour is an hour whose first sign is also a day of the week: 每周一二十点 is at 20:00.
var lateHour = regexp.MustCompile(`^二十[一二三四]?点`)

// chineseDays reads the days of a week: 一三五, 二和周四, 的周二. named: the word for the week
// comes again before a day.
func (c *cursor) chineseDays(named bool) string {
	var days []string
	for {
		before := *c
		c.skip("的", "和", "跟", "、", ",", "及")
		c.skip("每")
		again := c.weekWord()
		if named && !again && len(days) == 0 || len(days) > 0 && !again && lateHour.MatchString(c.rest) {
			*c = before
			break
		}
		day, ok := c.chineseDay()
		if !ok {
			*c = before
			break
		}
		days = append(days, day)
	}
	if len(days) == 0 {
		return ""
	}
	return ";BYDAY=" + strings.Join(days, ",")
}

func (c *cursor) chineseDay() (string, bool) {
	for i, w := range [...]string{"一", "二", "三", "四", "五", "六", "日", "天"} {
		if strings.HasPrefix(c.rest, w+"点") {
			return "", false // 每周三点: a time of day
		}
		if c.take(w) {
			return week[min(i, 6)], true
		}
	}
	return "", false
}

// chineseNth reads 第二个周二 and 最后一个星期五 of a month.
func (c *cursor) chineseNth() (string, bool) {
	before := *c
	c.skip("的")
	n := -1
	if !c.take("最后一个") {
		var ok bool
		if !c.take("第") {
			*c = before
			return "", false
		}
		if n, ok = c.number(); !ok || n < 1 || n > 5 {
			*c = before
			return "", false
		}
		c.skip("个")
	}
	if c.weekWord() {
		if day, ok := c.chineseDay(); ok {
			return fmt.Sprintf(";BYDAY=%d%s", n, day), true
		}
	}
	*c = before
	return "", false
}
