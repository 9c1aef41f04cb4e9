package spoken

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// SayRepeat returns a rule of RFC 5545 as people say it, with the time of day of at:
// every weekday at 7:00, 每个工作日7点, with the day on which it ends. It is "" for a rule that has no such words, and in other languages.
func SayRepeat(rule string, at time.Time, lang text.Lang) string {
	if !lang.IsOwn() {
		return ""
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rule, ";") {
		key, value, _ := strings.Cut(part, "=")
		parts[key] = value
	}
	interval, err := strconv.Atoi(parts["INTERVAL"])
	if err != nil {
		interval = 1
	}
	for key := range parts {
		if !slices.Contains([]string{"FREQ", "INTERVAL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "BYHOUR", "BYMINUTE", "WKST", "UNTIL"}, key) {
			return ""
		}
	}
	said := sayRule(interval, parts, at, lang)
	end, err := time.Parse("20060102", parts["UNTIL"][:min(8, len(parts["UNTIL"]))])
	if said == "" || err != nil {
		return said
	}
	return lang.Pick("到"+SayDay(end, lang)+"为止"+said, said+" until "+SayDay(end, lang))
}

// sayRule says all of a rule but its end.
func sayRule(interval int, parts map[string]string, at time.Time, lang text.Lang) string {
	if strings.Contains(parts["BYMINUTE"]+parts["BYMONTH"], ",") || parts["BYMONTH"] != "" && parts["FREQ"] != "YEARLY" {
		return ""
	}
	clock := lang.Pick("", " at ") + sayClocks(parts["BYHOUR"], at, lang)
	switch days := parts["BYDAY"]; parts["FREQ"] {
	case "MINUTELY":
		return every(interval, "分钟", "minute", lang)
	case "HOURLY":
		return every(interval, "小时", "hour", lang)
	case "DAILY":
		if days != "" || parts["BYMONTHDAY"] != "" {
			return ""
		}
		return every(interval, "天", "day", lang) + clock
	case "WEEKLY":
		return sayWeekly(interval, days, at, lang) + clock
	case "MONTHLY":
		if said := sayMonthly(interval, days, parts["BYMONTHDAY"], at, lang); said != "" {
			return said + clock
		}
	case "YEARLY":
		if interval == 1 && days == "" && !strings.Contains(parts["BYMONTHDAY"], ",") {
			return lang.Pick("每年"+SayDay(at, lang), "every year on "+SayDay(at, lang)) + clock
		}
	}
	return ""
}

// sayClocks says the time of day of at, or its minutes at all the hours that are listed.
func sayClocks(hours string, at time.Time, lang text.Lang) string {
	var clocks []string
	for hour := range strings.SplitSeq(hours, ",") {
		if h, err := strconv.Atoi(hour); err == nil {
			at = time.Date(at.Year(), at.Month(), at.Day(), h, at.Minute(), 0, 0, time.UTC)
		}
		clocks = append(clocks, SayClock(at, lang))
	}
	return text.List(clocks, lang)
}

// every returns every 2 hours, 每2小时, every day, 每天.
func every(n int, zh, en string, lang text.Lang) string {
	if n == 1 {
		return lang.Pick("每"+zh, "every "+en)
	}
	return lang.Pick(fmt.Sprintf("每%d%s", n, zh), fmt.Sprintf("every %d %ss", n, en))
}

func sayWeekly(interval int, days string, at time.Time, lang text.Lang) string {
	if days == "" {
		days = strings.ToUpper(at.Weekday().String()[:2])
	}
	switch days {
	case "MO,TU,WE,TH,FR":
		if interval == 1 {
			return lang.Pick("每个工作日", "every weekday")
		}
	case "SA,SU":
		if interval == 1 {
			return lang.Pick("每个周末", "every weekend")
		}
	}
	var names []string
	for day := range strings.SplitSeq(days, ",") {
		_, name := namedDay(day, lang)
		names = append(names, name)
	}
	said, on := text.List(names, lang), "on"
	if n := len(names); n > 2 && strings.Contains(strings.Join(week[:], ","), days) { // one after the other
		said, on = names[0]+lang.Pick("到", " to ")+names[n-1], "from"
	}
	if lang.IsChinese() {
		if interval == 1 {
			return "每" + said
		}
		return fmt.Sprintf("每%d周的%s", interval, said)
	}
	switch {
	case interval == 1:
		return "every " + said
	case interval == 2 && len(names) == 1:
		return "every second " + said
	}
	return fmt.Sprintf("every %d weeks %s %s", interval, on, said)
}

func sayMonthly(interval int, days, dates string, at time.Time, lang text.Lang) string {
	monthly := every(interval, "个月", "month", lang)
	switch {
	case days != "":
		n, name := namedDay(days, lang)
		if strings.Contains(days, ",") || dates != "" || n == 0 || n < -1 || n > 5 {
			return ""
		}
		if n == -1 {
			return lang.Pick(monthly+"最后一个"+name, "on the last "+name+" of "+monthly)
		}
		return lang.Pick(fmt.Sprintf("%s第%d个%s", monthly, n, name), fmt.Sprintf("on the %s %s of %s", ordinal(n), name, monthly))
	case dates == "-1":
		return lang.Pick(monthly+"最后一天", "on the last day of "+monthly)
	}
	day := at.Day()
	if n, err := strconv.Atoi(dates); err == nil && n > 0 {
		day = n
	} else if list := strings.Split(dates, ","); len(list) > 1 { // 28,29,30,31: the last of them that the month has
		if day, err = strconv.Atoi(list[len(list)-1]); err != nil {
			return ""
		}
	}
	return lang.Pick(fmt.Sprintf("%s%d号", monthly, day), fmt.Sprintf("on the %s of %s", ordinal(day), monthly))
}

// namedDay returns the number and the name of 2TU or MO.
func namedDay(day string, lang text.Lang) (n int, name string) {
	if len(day) < 2 {
		return 0, day
	}
	n, _ = strconv.Atoi(day[:len(day)-2])
	for d := range time.Weekday(7) {
		if strings.ToUpper(d.String()[:2]) == day[len(day)-2:] {
			return n, lang.Pick("星期"+string([]rune("日一二三四五六")[d]), d.String())
		}
	}
	return n, day
}

// ordinal returns 1st, 2nd, 25th.
func ordinal(n int) string {
	end := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(n) + end
}

// SayPast returns a time that has passed as people say it at now, in English with its
// preposition: the time of day, and the day where it is not today.
func SayPast(t, now time.Time, lang text.Lang) string {
	if lang.IsOwn() && t.Format(time.DateOnly) == noonIn(now, -1).Format(time.DateOnly) {
		return lang.Pick("昨天", "yesterday at ") + SayClock(t, lang)
	}
	return SayTime(t, now, lang)
}
