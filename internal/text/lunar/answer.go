package lunar

import (
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// SayDate returns the day of the Chinese calendar that the date of t is, as an answer: 农历丙午年十月十六. The
// error is [ErrRange].
func SayDate(t time.Time, lang text.Lang) (string, error) {
	d, err := Of(t)
	if err != nil {
		return "", err
	}
	month := fmt.Sprintf("month %d", d.Month)
	if d.Leap {
		month = "leap " + month
	}
	return lang.Pick("农历"+d.String()+"。",
		fmt.Sprintf("In the Chinese calendar it is day %d of %s, in the year of the %s.", d.Day, month, d.zodiac().en)), nil
}

// SayYear returns the animal of a lunar year, as an answer: 2026年是丙午年，属马. The error is [ErrRange].
func SayYear(year int, lang text.Lang) (string, error) {
	if year <= firstYear || year > lastYear {
		return "", ErrRange
	}
	d := Date{Year: year, Month: 1, Day: 1}
	animal := d.zodiac()
	return lang.Pick(fmt.Sprintf("%d年是%s年，属%s。", year, d.stemBranch(), animal.zh),
		fmt.Sprintf("%d is the year of the %s.", year, animal.en)), nil
}

// SayTerm returns the solar term that begins on the date of now, and the next one, as an answer. It is ""
// where they are not known.
func SayTerm(now time.Time, lang text.Lang) string {
	today, next := readNames().termOf(now)
	if next.zh == "" {
		return ""
	}
	said := lang.Pick("下一个节气是", "The next solar term is ")
	if today.zh != "" {
		said = lang.Pick("今天是"+today.zh+"，"+said, "Today is "+today.en+". "+said)
	}
	days := int(next.date.Sub(midnight(now)) / (24 * time.Hour))
	when := lang.Pick("，"+spoken.SayDay(next.date, lang)+"，还有", ", on "+spoken.SayDay(next.date, lang)+", in ")
	return said + lang.Pick(next.zh, next.en) + when + count(days, false, lang) + lang.Pick("。", ".")
}

// SayFestivals returns the festivals on a date, or the next one after it, as an answer.
func SayFestivals(date, now time.Time, lang text.Lang) string {
	all := readNames()
	if names := all.festivals(date); len(names) > 0 {
		said := make([]string, len(names))
		for i, n := range names {
			said[i] = lang.Pick(n.zh, n.en)
		}
		day := lang.Pick(spoken.SayDay(date, lang)+"是", spoken.SayDay(date, lang)+" is ")
		if midnight(date).Equal(midnight(now)) {
			day = lang.Pick("今天是", "Today is ")
		}
		return day + strings.Join(said, lang.Pick("、", " and ")) + lang.Pick("。", ".")
	}
	for day := range 366 {
		next := midnight(date).AddDate(0, 0, day)
		if names := all.festivals(next); len(names) > 0 {
			said := (Day{next, names[0]}).Say(now, lang, false)
			return lang.Pick("不是节日。下一个节日：", "It is no holiday. The next: ") + said
		}
	}
	return lang.Pick("不是节日。", "It is no holiday.")
}
