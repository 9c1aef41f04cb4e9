package spoken

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// When reads a time to come as [Time] does, or one that comes again and again: 每天早上七点, every
// weekday at 7, 每两周的周二下午三点, the first monday of every month at 9, every 30 minutes. rule is
// then how it recurs, as RFC 5545 writes it, and at is where it begins, which may have passed; a
// time without morning or evening is as on the 24 hour clock. rule is "" for a single time.
func When(s string, now time.Time) (at time.Time, rule string, err error) {
	rule, rest, ok := Repeat(s)
	if !ok {
		at, err = Time(s, now)
		return at, "", err
	}
	within := strings.Contains(rule, "FREQ=HOURLY") || strings.Contains(rule, "FREQ=MINUTELY")
	if rest = strings.TrimSpace(bare(rest)); rest == "" {
		if within {
			return now.Round(0).Truncate(time.Second), rule, nil
		}
		rest = "9:00"
	}
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()).Add(-time.Second)
	if at, err = said(rest, midnight); err != nil {
		return time.Time{}, "", err
	}
	return at, rule, nil
}

// Repeat finds how often something recurs, and returns that as a rule of RFC 5545, without
// the time of day, and what else was said: every weekday at 7 is FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR
// and at 7. ok is false if it does not recur.
func Repeat(s string) (rule, rest string, ok bool) {
	folded := fold(s)
	for i := range folded {
		if i > 0 && isLetter(folded[i]) && isLetter(folded[i-1]) {
			continue
		}
		c := &cursor{folded[i:]}
		if rule, ok := c.repeat(); ok {
			before := strings.TrimRight(folded[:i], " ,")
			if head, last := strings.CutSuffix(" "+before, " on"); last { // on the first monday of the month
				before = head
			}
			before = strings.TrimSuffix(before, " of")
			return rule, strings.TrimSpace(before + " " + strings.TrimLeft(c.rest, " ,")), true
		}
	}
	return "", "", false
}

const (
	workdays = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
	weekends = "FREQ=WEEKLY;BYDAY=SA,SU"
)

// frequencies are the units of RFC 5545, with the words for them.
var frequencies = [...]struct {
	name  string
	words []string
}{
	{"MINUTELY", []string{"分钟", "分", "minutes", "minute"}},
	{"HOURLY", []string{"小时", "钟头", "hours", "hour"}},
	{"DAILY", []string{"天", "日", "days", "day"}},
	{"WEEKLY", []string{"周", "星期", "礼拜", "weeks", "week"}},
	{"MONTHLY", []string{"月", "months", "month"}},
	{"YEARLY", []string{"年", "years", "year"}},
}

// repeat reads how something recurs, if that comes next.
func (c *cursor) repeat() (rule string, ok bool) {
	before := *c
	for _, form := range []func() (string, bool){c.dayRange, c.repeatWord, c.everyNth, c.onDays, c.every, c.chineseEvery} {
		if rule, ok := form(); ok {
			return rule, true
		}
		*c = before
	}
	return "", false
}

// repeatWord reads words that say it all.
func (c *cursor) repeatWord() (string, bool) {
	for _, w := range [...]struct {
		rule  string
		words []string
	}{
		{workdays, []string{
			"每个工作日", "每工作日", "工作日每天", "工作日", "每个上班日",
			"every weekday", "each weekday", "on weekdays", "weekdays", "every workday", "every working day", "every work day", "on workdays",
		}},
		{weekends, []string{"每个周末", "每周末", "每到周末", "every weekend", "each weekend", "on weekends", "weekends"}},
		{"FREQ=DAILY", []string{"每一天", "每天", "每日", "天天", "every single day", "everyday", "daily"}},
		{"FREQ=HOURLY", []string{"hourly", "每个小时", "每小时", "每个钟头", "每一个小时"}},
		{"FREQ=MINUTELY;INTERVAL=30", []string{"每半个小时", "每半小时", "每隔半小时", "每隔半个小时", "every half an hour", "every half hour"}},
		{"FREQ=WEEKLY", []string{"weekly"}},
		{"FREQ=WEEKLY;INTERVAL=2", []string{"every fortnight", "once a fortnight", "fortnightly"}},
		{"FREQ=MONTHLY", []string{"monthly"}},
		{"FREQ=YEARLY", []string{"yearly", "annually"}},
		{"FREQ=MONTHLY;BYMONTHDAY=-1", []string{
			"每个月的最后一天", "每个月最后一天", "每月最后一天", "每个月底", "每月底",
			"the last day of every month", "the last day of each month", "every last day of the month", "every month on the last day", "at the end of every month",
		}},
	} {
		if c.take(w.words...) {
			return w.rule, true
		}
	}
	for _, w := range []string{"晚", "早"} { // 每晚八点: the part of the day is read later
		if strings.HasPrefix(c.rest, "每"+w) {
			c.take("每")
			return "FREQ=DAILY", true
		}
	}
	return "", false
}

// week is the order of the days of a week.
var week = [...]string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// dayRange reads monday to thursday, 每周一到周六 and the like.
func (c *cursor) dayRange() (string, bool) {
	c.take("every day from ", "every ", "each ", "on ", "from ")
	if !c.take("每个", "每逢") {
		c.take("每")
	}
	day, bare := c.weekdayName, false
	if c.weekWord() {
		day = func() (string, bool) { bare = !c.weekWord(); return c.chineseDay() }
	}
	first, ok := day()
	if !ok || !c.take("到", "至", " to ", " through ", " until ", " till ") {
		return "", false
	}
	last, ok := day()
	if !ok || bare && !c.endsDays() {
		return "", false
	}
	c.take("每天")
	if days := daysBetween(first, last); len(days) < len(week) {
		return "FREQ=WEEKLY;BYDAY=" + strings.Join(days, ","), true
	}
	return "FREQ=DAILY", true
}

// endsDays reports whether what comes next can follow the days of a range, and makes no other word of the last one:
// 周一到五早上, but 周二到三亚 is a journey.
func (c *cursor) endsDays() bool {
	for _, word := range []string{"每", "的", "都", " ", ",", "提醒", "叫", "喊", "通知"} {
		if strings.HasPrefix(c.rest, word) {
			return true
		}
	}
	ahead, k := *c, clock{}
	k.read(&ahead)
	return c.rest == "" || ahead.rest != c.rest
}

// daysBetween lists the days from one to another, which may be in the next week.
func daysBetween(first, last string) (days []string) {
	for i := slices.Index(week[:], first); ; i++ {
		days = append(days, week[i%len(week)])
		if week[i%len(week)] == last {
			slices.SortFunc(days, func(a, b string) int { return slices.Index(week[:], a) - slices.Index(week[:], b) })
			return days
		}
	}
}

// weekWord goes over the word before the number of a day of the week.
func (c *cursor) weekWord() bool { return c.take("周", "星期", "礼拜") }

// everyNth reads the first monday of the month, the last friday of every month, every last friday.
func (c *cursor) everyNth() (string, bool) {
	every := c.take("every ", "each ")
	c.skip("the ")
	n, ok := -1, c.take("last")
	if !ok {
		if n, _, ok = c.ordinal(); !ok || n > 5 {
			return "", false
		}
	}
	c.skip(" ")
	day, ok := c.weekdayName()
	if !ok {
		return "", false
	}
	of := c.take(" of every month", " of each month", " every month", " each month", " of the month", " of a month", " in the month")
	return fmt.Sprintf("FREQ=MONTHLY;BYDAY=%d%s", n, day), of || every && (n == 1 || n == -1)
}

// onDays reads mondays and on mondays and thursdays.
func (c *cursor) onDays() (string, bool) {
	c.take("on ")
	var days []string
	for {
		day, ok := c.weekdayPlural()
		if !ok {
			break
		}
		days = append(days, day)
		before := *c
		if !c.take(", and ", ",", " and ", " & ") {
			break
		}
		if c.skip(" "); !strings.Contains(c.rest, "day") {
			*c = before
			break
		}
	}
	return "FREQ=WEEKLY;BYDAY=" + strings.Join(days, ","), len(days) > 0
}

// every reads every day, every other week, every second tuesday, every monday and friday,
// every 20 minutes, every morning.
func (c *cursor) every() (string, bool) {
	if !c.take("every ", "each ", "once every ", "once a ", "once an ") {
		return "", false
	}
	for _, part := range []string{"morning", "noon", "afternoon", "evening", "night", "midnight"} {
		if strings.HasPrefix(c.rest, part) {
			return "FREQ=DAILY", true
		}
	}
	interval := 1
	before := *c
	if c.take("other ") {
		interval = 2
	} else if n, _, ok := c.ordinal(); ok && n > 0 && strings.HasPrefix(c.rest, " ") {
		interval = n
		c.skip(" ")
	} else {
		*c = before
	}
	if ahead := *c; ahead.month() != 0 {
		return "FREQ=YEARLY", interval == 1
	}
	if days := c.weekdayNames(); len(days) > 0 {
		return withInterval("FREQ=WEEKLY", interval) + ";BYDAY=" + strings.Join(days, ","), true
	}
	for _, f := range frequencies {
		if !c.take(f.words...) {
			continue
		}
		rule := withInterval("FREQ="+f.name, interval)
		if on := *c; f.name == "WEEKLY" && on.take(" on ") {
			if days := on.weekdayNames(); len(days) > 0 {
				rule, *c = rule+";BYDAY="+strings.Join(days, ","), on
			}
		}
		return rule, interval <= 1000
	}
	return "", false
}

func withInterval(rule string, interval int) string {
	if interval == 1 {
		return rule
	}
	return rule + ";INTERVAL=" + strconv.Itoa(interval)
}

// weekdayNames reads monday, wednesday and friday.
func (c *cursor) weekdayNames() (days []string) {
	for {
		day, ok := c.weekdayName()
		if !ok {
			return days
		}
		days = append(days, day)
		before := *c
		if !c.take(", and ", ",", " and ", " & ") {
			return days
		}
		c.skip(" ", "every ")
		if ahead := *c; !ahead.isWeekday() {
			*c = before
			return days
		}
	}
}

func (c *cursor) isWeekday() bool {
	_, ok := c.weekdayName()
	return ok
}

// weekdayName reads the name of a day of the week and returns its two letters.
func (c *cursor) weekdayName() (string, bool) {
	for n := range 7 {
		name := strings.ToLower(time.Weekday(n).String())
		if c.take(name, name[:3], name+"s") {
			return strings.ToUpper(name[:2]), true
		}
	}
	return "", false
}

// weekdayPlural reads mondays, and monday before mornings.
func (c *cursor) weekdayPlural() (string, bool) {
	for n := range 7 {
		name := strings.ToLower(time.Weekday(n).String())
		if c.take(name + "s") {
			return strings.ToUpper(name[:2]), true
		}
		if ahead := *c; ahead.take(name) && ahead.take(" mornings", " afternoons", " evenings", " nights") {
			c.take(name)
			return strings.ToUpper(name[:2]), true
		}
	}
	return "", false
}
