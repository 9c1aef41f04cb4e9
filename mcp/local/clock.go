package local

import (
	"context"
	"time"

	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
)

// clock tells the time, and what hangs on it: dates, timers and reminders.
type clock struct{ now func() time.Time }

// currentTime tells the time in the turn's zone, in the turn's language, with
// the weekday.
func (c clock) currentTime(ctx context.Context, _ map[string]any) mcp.ActionResponse {
	now := c.today(ctx)
	return tell(say(ctx, "local/now", now.Format(time.DateTime)+" "+spoken.SayWeekday(now, language(ctx))))
}

// today is the present in the zone of the turn.
func (c clock) today(ctx context.Context) time.Time {
	now := c.now()
	if zone := mcp.InfoFrom(ctx).Zone; zone != nil {
		now = now.In(zone)
	}
	return now
}
