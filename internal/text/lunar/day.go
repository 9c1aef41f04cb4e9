package lunar

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// aliasesFile has a line for each other name of a festival or solar term, as folded makes it, with the
// name that names.txt has.
//
//go:embed aliases.txt
var aliasesFile string

// called holds the names of names.txt by what people call them, folded.
var called = sync.OnceValue(func() map[string]name {
	known := make(map[string]name)
	for _, n := range readNames() {
		known[folded(n.en)], known[n.zh] = n, n
		known[strings.TrimSuffix(n.zh, "节")] = n
	}
	for line := range strings.Lines(aliasesFile) {
		other, own, _ := strings.Cut(strings.TrimSpace(line), "\t")
		known[other] = known[own]
	}
	return known
})

// folded is a name in lower case, without apostrophes and other signs.
func folded(words string) string {
	words = strings.NewReplacer("'", "", "’", "", "-", " ", "(", "", ")", "").Replace(strings.ToLower(words))
	return strings.TrimPrefix(strings.Join(strings.Fields(words), " "), "the ")
}

// Day is a day that was named.
type Day struct {
	Date time.Time // midnight in UTC
	name name      // of the festival or solar term that it was named by
}

// Find returns the day that words name: a festival or solar term (中秋节, christmas next year), a day of the
// Chinese calendar (农历八月十五, 正月初一), any that [spoken.Day] reads, or one that is said by another: a week from friday, 圣诞节前一天.
func Find(words string, now time.Time) (Day, bool) {
	words = weekend.Replace(strings.TrimSpace(words))
	if day, ok := named(words, now); ok {
		return day, true
	}
	for _, mark := range []string{"农历", "阴历", "正月", "腊月", "冬月", "大年"} {
		rest, ok := strings.CutPrefix(words, mark)
		if !ok {
			continue
		}
		if mark != "农历" && mark != "阴历" {
			rest = words
		}
		if d, err := Read(rest, now); err == nil {
			date, err := d.Solar()
			return Day{Date: date}, err == nil
		}
		return Day{}, false
	}
	date, err := spoken.Day(words, now)
	if m := longAgo.FindStringSubmatch(words); m != nil && err != nil {
		date, err = spoken.Day(m[1]+" 2000", now) // a leap year
		year, _ := strconv.Atoi(m[2])
		was := time.Date(year, date.Month(), date.Day(), 0, 0, 0, 0, time.UTC)
		return Day{Date: was}, err == nil && was.Day() == date.Day()
	}
	if err != nil {
		return relative(words, now)
	}
	return Day{Date: midnight(date)}, true
}

var (
	// weekend names its first day.
	weekend = strings.NewReplacer("周末", "周六", "the weekend", "saturday", "this weekend", "saturday", "weekend", "saturday")
	// longAgo is an English date of a year that spoken.Day takes for a time of day.
	longAgo = regexp.MustCompile(`^(.*[a-z]{3}.*) (1[89]\d\d)$`)
	// ofYear is the year that a festival is said with: 2027年春节, christmas 2030.
	ofYear = regexp.MustCompile(`^(?:(\d{4}) ?年的?(.+)|(.+?) (?:in |of )?(\d{4}))$`)
)

// named finds a day by the name of a festival or solar term: of 今年, 明年 or 去年, else the next one.
func named(words string, now time.Time) (Day, bool) {
	words = folded(words)
	year, given := now.Year(), false
	for word, add := range map[string]int{"今年": 0, "明年": 1, "后年": 2, "去年": -1, "this year": 0, "next year": 1, "last year": -1} {
		if rest := strings.Replace(words, word, "", 1); rest != words {
			words, year, given = rest, now.Year()+add, true
		}
	}
	if m := ofYear.FindStringSubmatch(words); m != nil && !given {
		words = m[2] + m[3]
		year, _ = strconv.Atoi(m[1] + m[4])
		given = year >= 1900 && year <= 2100
	}
	n, ok := called()[strings.TrimPrefix(strings.Trim(words, " 的"), "the ")]
	if !ok {
		return Day{}, false
	}
	day, days := midnight(now), 2*366
	if given {
		day, days = time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC), 366
	}
	all := readNames()
	for range days {
		if (!given || day.Year() == year) && all.isNamed(day, n.zh) {
			return Day{day, n}, true
		}
		day = day.AddDate(0, 0, 1)
	}
	return Day{}, false
}

// Say returns what day it is and how far away, as an answer: 圣诞节是12月25日，星期五，还有31天. weeks has the
// days counted in weeks.
func (d Day) Say(now time.Time, lang text.Lang, weeks bool) string {
	days := int(d.Date.Sub(midnight(now)) / (24 * time.Hour))
	date, weekday := spoken.SayDay(d.Date, lang), spoken.SayWeekday(d.Date, lang)
	if d.Date.Year() != now.Year() {
		date = spoken.SayDate(d.Date, lang)
	}
	when := lang.Pick(date+"，"+weekday, weekday+", "+date)
	if lang.IsChinese() {
		return d.chinese(when, days, weeks) + "。"
	}
	return d.english(when, days, weeks) + "."
}

func (d Day) chinese(when string, days int, weeks bool) string {
	near := map[int]string{-2: "前天", -1: "昨天", 0: "今天", 1: "明天", 2: "后天"}[days]
	switch {
	case near != "" && d.name.zh != "":
		return d.name.zh + "就是" + near + "，" + when
	case near != "":
		return near + "是" + when
	}
	what := when
	if d.name.zh != "" {
		what = d.name.zh + "是" + when
	}
	if days < 0 {
		return fmt.Sprintf("%s，过去%s了", what, count(-days, weeks, text.Chinese))
	}
	return fmt.Sprintf("%s，还有%s", what, count(days, weeks, text.Chinese))
}

func (d Day) english(when string, days int, weeks bool) string {
	near := map[int]string{-1: "Yesterday was", 0: "Today is", 1: "Tomorrow is"}[days]
	switch {
	case near != "" && d.name.en != "":
		return near + " " + d.name.en + ": " + when
	case near != "":
		return near + " " + when
	case days < 0 && d.name.en != "":
		return fmt.Sprintf("%s was on %s, %s ago", d.name.en, when, count(-days, weeks, text.English))
	case days < 0:
		return fmt.Sprintf("That was %s, %s ago", when, count(-days, weeks, text.English))
	case d.name.en != "":
		return fmt.Sprintf("%s is on %s, in %s", d.name.en, when, count(days, weeks, text.English))
	}
	return fmt.Sprintf("That is %s, in %s", when, count(days, weeks, text.English))
}

// count returns a number of days in words, also in weeks.
func count(days int, weeks bool, lang text.Lang) string {
	said := spoken.SayDuration(time.Duration(days)*24*time.Hour, lang)
	if !weeks || days < 7 {
		return said
	}
	plural := func(n int, one string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprint(n, " ", one, "s")
	}
	said = lang.Pick(fmt.Sprintf("%d个星期", days/7), plural(days/7, "week"))
	if rest := days % 7; rest > 0 {
		said += lang.Pick(fmt.Sprintf("零%d天", rest), " and "+plural(rest, "day"))
	}
	return said
}
