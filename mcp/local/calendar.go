package local

import (
	"context"
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local/lunar"
)

const calendarSchema = `{"type":"object","properties":{` +
	`"date":{"type":"string","maxLength":100,"description":"公历日期，如 2026-02-17，或节日、节气名，如 明年中秋节；不给就是今天 / a day such as 2026-02-17, or a festival; today if left out"},` +
	`"lunar_date":{"type":"string","maxLength":100,"description":"或农历日期 年-月-日，年可省略，闰月在月前加 r，如 2025-r6-1、8-15 / or a lunar date year-month-day, the year may be left out, r before a leap month"}}}`

// calendar tells what day it is in both calendars, of today or of a given date.
func (c clock) calendar(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	date := c.today(ctx)
	switch solar, moon := textArg(arguments, "date"), textArg(arguments, "lunar_date"); {
	case moon != "":
		d, err := lunar.Read(moon, date)
		if err == nil {
			date, err = d.Solar()
		}
		if err != nil {
			return fail(fmt.Sprintf(say(ctx, "没有这个农历日期：%s", "there is no such lunar date: %s"), moon))
		}
	case solar != "":
		d, err := spoken.Day(solar, date)
		if named, ok := lunar.Named(solar, date); ok {
			d, err = named, nil
		}
		if err != nil {
			return fail(fmt.Sprintf(say(ctx, "不明白这个日期：%s，请写成 2026-02-17 这样", "%s is no day; write it like 2026-02-17"), solar))
		}
		date = d
	}
	d, err := lunar.Of(date)
	if err != nil {
		return fail(say(ctx, "农历只知道 1900 年到 2100 年", "the Chinese calendar is known from 1900 to 2100 only"))
	}
	return tell(say(ctx, chineseDay(date, d), englishDay(date, d)))
}

func chineseDay(date time.Time, d lunar.Date) string {
	zodiac, _ := d.Zodiac()
	parts := []string{
		date.Format("公历2006年1月2日") + " " + spoken.SayWeekday(date, text.Chinese),
		"农历" + d.StemBranch() + "年（" + zodiac + "年）" + d.MonthName() + d.DayName(),
	}
	for _, f := range lunar.Festivals(date) {
		parts = append(parts, f.Zh)
	}
	today, ok, next, more := lunar.TermOf(date)
	if ok {
		parts = append(parts, "今日"+today.Zh)
	}
	if more {
		parts = append(parts, "下一个节气是"+next.Date.Format("1月2日")+"的"+next.Zh)
	}
	return strings.Join(parts, "，")
}

func englishDay(date time.Time, d lunar.Date) string {
	_, zodiac := d.Zodiac()
	month := fmt.Sprintf("month %d", d.Month)
	if d.Leap {
		month = fmt.Sprintf("leap month %d", d.Month)
	}
	parts := []string{
		date.Format("Monday, 2 January 2006"),
		fmt.Sprintf("in the Chinese calendar day %d of %s of the year of the %s (%v)", d.Day, month, zodiac, d),
	}
	for _, f := range lunar.Festivals(date) {
		parts = append(parts, f.En)
	}
	today, ok, next, more := lunar.TermOf(date)
	if ok {
		parts = append(parts, "the solar term "+today.En+" ("+today.Zh+") begins")
	}
	if more {
		parts = append(parts, "the next solar term is "+next.En+" ("+next.Zh+") on "+next.Date.Format("2 January"))
	}
	return strings.Join(parts, "; ")
}
