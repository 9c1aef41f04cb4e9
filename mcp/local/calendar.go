package local

import (
	"context"

	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local/lunar"
)

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
