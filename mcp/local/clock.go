package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xiaozhi/internal/text/lunar"
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

// day tells the date of a day, its day of the week and how far away it is.
func (c clock) day(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	words, today := textArg(arguments, "day"), c.today(ctx)
	d, ok := lunar.Find(words, today)
	if !ok || !readable(ctx, words) {
		return fail(say(ctx, "local/day-none", words))
	}
	return tell(d.Say(today, language(ctx), false))
}

// calendar tells what day it is in both calendars, of today or of a given date.
func (c clock) calendar(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	date := c.today(ctx)
	if year, ok := intArg(arguments, "year"); ok && textArg(arguments, "date")+textArg(arguments, "lunar_date") == "" {
		if said, err := lunar.SayYear(year, language(ctx)); err == nil {
			return tell(said)
		}
		return fail(say(ctx, "local/lunar-range"))
	}
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
		d, ok := lunar.Find(solar, date)
		if !ok || !readable(ctx, solar) {
			return fail(say(ctx, "local/day-none", solar))
		}
		date = d.Date
	}
	said, err := lunar.Say(date, language(ctx))
	if err != nil {
		return fail(say(ctx, "local/lunar-range"))
	}
	return tell(said)
}

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
		d, err := lengthOf(ctx, text)
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

// setReminder asks the conversation to tell something at a time of day, once or again and
// again. repeat is a rule of RFC 5545, or words for one; the time may hold such words too.
func (c clock) setReminder(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	text, repeat := textArg(arguments, "time"), strings.TrimSpace(textArg(arguments, "repeat"))
	if repeat != "" && !strings.Contains(repeat, "=") {
		text, repeat = repeat+" "+text, ""
	}
	due, rule, err := spoken.When(text, c.today(ctx))
	if !readable(ctx, text) {
		err = errNotISO
	}
	if err != nil {
		return badTime(ctx, text, err)
	}
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{
		Action: mcp.TimerSet, Reminder: true, Due: due.Round(time.Second), Repeat: cmp.Or(repeat, rule), Text: strings.TrimSpace(textArg(arguments, "text")),
	})
}

// snooze asks the conversation to ring again later what has rung.
func (c clock) snooze(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	length := 10 * time.Minute
	if text := textArg(arguments, "duration"); text != "" {
		d, err := lengthOf(ctx, text)
		if err != nil {
			return badTime(ctx, text, err)
		}
		length = d
	}
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{Action: mcp.TimerSnooze, Due: c.today(ctx).Add(length)})
}

// beQuiet asks that nothing is said unasked until a time, for a length of time, or until somebody ends it.
func (c clock) beQuiet(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	now := c.today(ctx)
	args := mcp.QuietArgs{On: true}
	if words := textArg(arguments, "until"); words != "" {
		until, rule, err := spoken.When(words, now)
		if !readable(ctx, words) {
			err = errNotISO
		}
		if err == nil && rule != "" {
			err = spoken.ErrNoDate
		}
		if err != nil {
			return badTime(ctx, words, err)
		}
		args.Until = until.Round(time.Second)
	} else if words := textArg(arguments, "duration"); words != "" {
		d, err := lengthOf(ctx, words)
		if err == nil && (d <= 0 || d > spoken.MaxDuration) {
			err = spoken.ErrTooLong
		}
		if err != nil {
			return badTime(ctx, words, err)
		}
		args.Until = now.Add(d)
	}
	return handOver(mcp.HandlerQuiet, args)
}

// endQuiet asks that things may be said unasked again.
func endQuiet(context.Context, map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerQuiet, mcp.QuietArgs{})
}

// setRoutine asks the conversation to have something done at times. repeat is as in setReminder.
func (c clock) setRoutine(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	when, repeat := strings.TrimSpace(textArg(arguments, "when")), strings.TrimSpace(textArg(arguments, "repeat"))
	if repeat != "" && !strings.Contains(repeat, "=") {
		when, repeat = strings.TrimSpace(repeat+" "+when), ""
	}
	_, rule, err := spoken.When(when, c.today(ctx))
	switch {
	case !readable(ctx, when):
		err = errNotISO
	case err == nil && rule != "" && repeat != "":
		repeat = "" // the words say it
	}
	if err != nil {
		return badTime(ctx, when, err)
	}
	return handOver(mcp.HandlerRoutine, mcp.RoutineArgs{Action: mcp.RoutineSet, When: when, Repeat: repeat, Prompt: strings.TrimSpace(textArg(arguments, "what"))})
}

// listRoutines asks the conversation what is done at times.
func listRoutines(context.Context, map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerRoutine, mcp.RoutineArgs{Action: mcp.RoutineList})
}

// cancelRoutine asks the conversation to have something done no more.
func cancelRoutine(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	all, _ := arguments["all"].(bool)
	return handOver(mcp.HandlerRoutine, mcp.RoutineArgs{Action: mcp.RoutineCancel, Name: strings.TrimSpace(textArg(arguments, "name")), All: all})
}

// errNotISO says that a time is in words of a language whose times nobody here can read.
var errNotISO = errors.New("not in the form of ISO 8601")

// lengthOf reads a length of time.
func lengthOf(ctx context.Context, words string) (time.Duration, error) {
	if !readable(ctx, words) {
		return 0, errNotISO
	}
	return spoken.Duration(words)
}

// badTime says what is wrong with a time.
func badTime(ctx context.Context, given string, err error) mcp.ActionResponse {
	id := "local/time-unclear"
	switch {
	case errors.Is(err, spoken.ErrPast):
		id = "local/time-past"
	case errors.Is(err, spoken.ErrNoDate):
		id = "local/time-no-date"
	case errors.Is(err, spoken.ErrTooLong):
		id = "local/time-long"
	case !language(ctx).IsOwn():
		id = "local/time-iso"
	}
	return fail(fmt.Sprintf("%q: %s", given, say(ctx, id, err)))
}

// listTimers asks the conversation what is waiting.
func listTimers(context.Context, map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{Action: mcp.TimerList})
}

// kindArg is the kind of timer that is meant, as [mcp.TimerArgs] names it.
func kindArg(arguments map[string]any) string {
	return map[string]string{"timer": "timer", "reminder": "alert"}[textArg(arguments, "kind")]
}

// changeTimer asks the conversation to move what is waiting to another time.
func changeTimer(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	a := mcp.TimerArgs{Action: mcp.TimerChange, Text: strings.TrimSpace(textArg(arguments, "text")), Kind: kindArg(arguments)}
	to, add := strings.TrimSpace(textArg(arguments, "time")), strings.TrimSpace(textArg(arguments, "add"))
	switch {
	case add != "":
		if !readable(ctx, add) {
			return badTime(ctx, add, errNotISO)
		}
		by, err := spoken.Shift(add)
		if err != nil {
			return badTime(ctx, add, err)
		}
		a.By = int64(by / time.Second)
	case to == "":
		return fail(say(ctx, "local/change-when"))
	case !readable(ctx, to):
		return badTime(ctx, to, errNotISO)
	default:
		a.To = to
	}
	return handOver(mcp.HandlerTimer, a)
}

// cancelTimer asks the conversation to give up what is waiting.
func cancelTimer(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	all, _ := arguments["all"].(bool)
	kind := kindArg(arguments)
	return handOver(mcp.HandlerTimer, mcp.TimerArgs{
		Action: mcp.TimerCancel, Text: strings.TrimSpace(textArg(arguments, "text")), All: all, Kind: kind,
	})
}
