package lunar

import (
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// Say returns a day as both calendars have it, with its festivals and solar
// terms. The error is [ErrRange].
func Say(date time.Time, lang text.Lang) (string, error) {
	d, err := Of(date)
	if err != nil {
		return "", err
	}
	if lang == text.Chinese {
		return sayChinese(date, d), nil
	}
	return sayEnglish(date, d), nil
}

func sayChinese(date time.Time, d Date) string {
	zodiac, _ := d.Zodiac()
	parts := []string{
		date.Format("公历2006年1月2日") + " " + spoken.SayWeekday(date, text.Chinese),
		"农历" + d.StemBranch() + "年（" + zodiac + "年）" + d.MonthName() + d.DayName(),
	}
	for _, f := range Festivals(date) {
		parts = append(parts, f.Zh)
	}
	today, ok, next, more := TermOf(date)
	if ok {
		parts = append(parts, "今日"+today.Zh)
	}
	if more {
		parts = append(parts, "下一个节气是"+next.Date.Format("1月2日")+"的"+next.Zh)
	}
	return strings.Join(parts, "，")
}

func sayEnglish(date time.Time, d Date) string {
	_, zodiac := d.Zodiac()
	month := fmt.Sprintf("month %d", d.Month)
	if d.Leap {
		month = fmt.Sprintf("leap month %d", d.Month)
	}
	parts := []string{
		date.Format("Monday, 2 January 2006"),
		fmt.Sprintf("in the Chinese calendar day %d of %s of the year of the %s (%v)", d.Day, month, zodiac, d),
	}
	for _, f := range Festivals(date) {
		parts = append(parts, f.En)
	}
	today, ok, next, more := TermOf(date)
	if ok {
		parts = append(parts, "the solar term "+today.En+" ("+today.Zh+") begins")
	}
	if more {
		parts = append(parts, "the next solar term is "+next.En+" ("+next.Zh+") on "+next.Date.Format("2 January"))
	}
	return strings.Join(parts, "; ")
}
