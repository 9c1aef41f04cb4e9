package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
)

// Schemas of the tools about timers. set_timer takes either of its lengths; none
// is required by the schema, so that seconds can be given alone.
const (
	timerSchema = `{"type":"object","properties":{` +
		`"seconds":{"type":"integer","minimum":1,"maximum":31622400,"description":"多少秒后 / after so many seconds"},` +
		`"duration":{"type":"string","maxLength":100,"description":"或时长，如 10分钟、2h30m / or a length of time, such as 10 minutes"},` +
		`"text":{"type":"string","maxLength":500,"description":"到时要说的事，可省略 / what it is for, may be left out"}}}`
	reminderSchema = `{"type":"object","properties":{` +
		`"time":{"type":"string","maxLength":100,"description":"什么时候，照用户的说法或 ISO 8601，如 明天早上七点 / when, in the user's words or ISO 8601, such as tomorrow at 7 am"},` +
		`"text":{"type":"string","minLength":1,"maxLength":500,"description":"提醒什么 / what to remind of"}},"required":["time","text"]}`
	cancelSchema = `{"type":"object","properties":{` +
		`"text":{"type":"string","maxLength":500,"description":"要取消的那个的内容或时间，只有一个时可省略 / words of the one meant, may be left out if there is only one"},` +
		`"all":{"type":"boolean","description":"取消全部 / cancel all of them"}}}`
)

// setTimer asks the conversation to ring after a length of time.
func (c clock) setTimer(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	var length time.Duration
	if seconds, ok := intArg(arguments, "seconds"); ok {
		length = time.Duration(min(max(seconds, 0), int(spoken.MaxDuration.Seconds())+1)) * time.Second
	} else {
		text := textArg(arguments, "duration")
		if text == "" {
			return fail(say(ctx, "local/how-long"))
		}
		d, err := spoken.Duration(text)
		if err != nil {
			return badTime(ctx, text, err)
		}
		length = d
	}
	if length <= 0 || length > spoken.MaxDuration {
		return badTime(ctx, length.String(), spoken.ErrTooLong)
	}
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{
		Action: mcp.TimerSet, Due: c.today(ctx).Add(length), Text: strings.TrimSpace(textArg(arguments, "text")),
	})
}

// setReminder asks the conversation to tell something at a time of day.
func (c clock) setReminder(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	text := textArg(arguments, "time")
	due, err := spoken.Time(text, c.today(ctx))
	if err != nil {
		return badTime(ctx, text, err)
	}
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{
		Action: mcp.TimerSet, Reminder: true, Due: due.Round(time.Second), Text: strings.TrimSpace(textArg(arguments, "text")),
	})
}

// badTime says what is wrong with a time.
func badTime(ctx context.Context, given string, err error) mcp.ActionResponse {
	id := "local/time-unclear"
	switch {
	case errors.Is(err, spoken.ErrPast):
		id = "local/time-past"
	case errors.Is(err, spoken.ErrTooLong):
		id = "local/time-long"
	case errors.Is(err, spoken.ErrRepeats):
		id = "local/time-repeats"
	}
	return fail(fmt.Sprintf("%q: %s", given, say(ctx, id, err)))
}

// listTimers asks the conversation what is waiting.
func listTimers(context.Context, map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{Action: mcp.TimerList})
}

// cancelTimer asks the conversation to give up what is waiting.
func cancelTimer(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	all, _ := arguments["all"].(bool)
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{
		Action: mcp.TimerCancel, Text: strings.TrimSpace(textArg(arguments, "text")), All: all,
	})
}
