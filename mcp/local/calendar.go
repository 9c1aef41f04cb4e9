package local

import (
	"context"

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
			return fail(say(ctx, "local/lunar-none", moon))
		}
	case solar != "":
		d, err := spoken.Day(solar, date)
		if named, ok := lunar.Named(solar, date); ok {
			d, err = named, nil
		}
		if err != nil {
			return fail(say(ctx, "local/day-none", solar))
		}
		date = d
	}
	said, err := lunar.Say(date, language(ctx))
	if err != nil {
		return fail(say(ctx, "local/lunar-range"))
	}
	return tell(said)
}
