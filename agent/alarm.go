package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// maxAlarms is how many timers and reminders one device may have; more are refused.
const maxAlarms = 32

// alarm is a timer or a reminder that waits for its time.
type alarm struct {
	due      time.Time
	text     string // what to tell; "" for a bare timer
	language string
	reminder bool
}

// setAlarm sets the timer of the next alarm.
func (c *Conversation) setAlarm() {
	if len(c.dev.alarms) == 0 {
		c.alarm.Stop()
		return
	}
	c.alarm.Reset(time.Until(c.dev.alarms[0].due))
}

// ringAlarms tells all that is due.
func (c *Conversation) ringAlarms() {
	now := time.Now()
	for len(c.dev.alarms) > 0 && !c.dev.alarms[0].due.After(now) {
		a := c.dev.alarms[0]
		id := prompts.TimerDue
		if a.text != "" {
			id = prompts.ReminderDue
		}
		text := c.o.Prompts.Phrase(id, a.language, "text", a.text)
		if late := now.Sub(a.due); late > time.Minute {
			text = joinText(text, c.o.Prompts.Phrase(prompts.AlarmLate, a.language, "time", clock(a.due.In(c.o.Zone))))
		}
		if !c.tell(notice{language: a.language, ring: true, say: text}) {
			c.alarm.Reset(noticeAfter) // when there is room again
			return
		}
		c.log.Info("timer is due", "due", a.due, "late", now.Sub(a.due).Round(time.Second))
		c.dev.alarms = c.dev.alarms[1:]
	}
	c.setAlarm()
}

// clock is a time of day as people say it: 7:05.
func clock(t time.Time) string { return t.Format("15:04") }

var errManyAlarms = errors.New("there are too many timers already")

// handleTimer sets, lists or cancels timers and reminders.
func handleTimer(c *Conversation, t *turn, args any) (handled, error) {
	a, err := mcp.DecodeArgs[mcp.TimerArgs](args)
	if err != nil {
		return handled{}, err
	}
	lang := t.order.language
	switch a.Action {
	case mcp.TimerSet:
		return c.addAlarm(alarm{due: a.Due, text: a.Text, language: lang, reminder: a.Reminder})
	case mcp.TimerList:
		return handled{result: c.alarmList(lang), again: true}, nil
	case mcp.TimerCancel:
		return c.cancelAlarms(a, lang)
	}
	return handled{}, fmt.Errorf("unknown timer action %q", a.Action)
}

func (c *Conversation) addAlarm(a alarm) (handled, error) {
	now := time.Now()
	switch {
	case !a.due.After(now):
		return handled{}, fmt.Errorf("%s: %s", handledText(a.language, "这个时间已经过去了", "that time is in the past"), a.due.In(c.o.Zone).Format(time.DateTime))
	case len(c.dev.alarms) >= maxAlarms:
		return handled{}, errManyAlarms
	}
	i, _ := slices.BinarySearchFunc(c.dev.alarms, a.due, func(b alarm, due time.Time) int { return b.due.Compare(due) })
	c.dev.alarms = slices.Insert(slices.Clone(c.dev.alarms), i, a)
	c.setAlarm()
	if a.reminder {
		return handled{say: c.o.Prompts.Phrase(prompts.ReminderSet, a.language, "time", dayAndClock(a.due.In(c.o.Zone), now.In(c.o.Zone), a.language))}, nil
	}
	return handled{say: c.o.Prompts.Phrase(prompts.TimerSet, a.language, "duration", lengthWords(a.due.Sub(now), a.language))}, nil
}

// alarmView is an alarm as the model sees it.
type alarmView struct {
	Due  string `json:"due"`
	Left string `json:"left"`
	Text string `json:"text,omitempty"`
}

func (c *Conversation) alarmList(lang string) string {
	if len(c.dev.alarms) == 0 {
		return handledText(lang, "没有定时或提醒。", "there are no timers or reminders.")
	}
	now := time.Now()
	views := make([]alarmView, len(c.dev.alarms))
	for i, a := range c.dev.alarms {
		views[i] = alarmView{dayAndClock(a.due.In(c.o.Zone), now.In(c.o.Zone), lang), lengthWords(a.due.Sub(now), lang), a.text}
	}
	text, err := json.Marshal(views)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// cancelAlarms gives up all alarms, those whose text holds the words, or, when
// no words are given, the only or the next one.
func (c *Conversation) cancelAlarms(a mcp.TimerArgs, lang string) (handled, error) {
	before := len(c.dev.alarms)
	switch {
	case a.All:
		c.dev.alarms = nil
	case a.Text != "":
		c.dev.alarms = slices.DeleteFunc(slices.Clone(c.dev.alarms), func(al alarm) bool {
			return strings.Contains(bare(al.text), bare(a.Text))
		})
	case before > 0:
		c.dev.alarms = slices.Clone(c.dev.alarms[1:])
	}
	c.setAlarm()
	if len(c.dev.alarms) == before {
		return handled{result: handledText(lang, "没有找到这样的定时或提醒。", "there is no such timer or reminder. ") + c.alarmList(lang), again: true}, nil
	}
	return handled{say: c.o.Prompts.Phrase(prompts.TimerCancelled, lang)}, nil
}

// lengthWords is a length of time as people say it, to the second.
func lengthWords(d time.Duration, lang string) string {
	d = d.Round(time.Second)
	var parts []string
	for _, unit := range []struct {
		length        time.Duration
		zh, one, many string
	}{
		{24 * time.Hour, "天", "day", "days"},
		{time.Hour, "小时", "hour", "hours"},
		{time.Minute, "分钟", "minute", "minutes"},
		{time.Second, "秒", "second", "seconds"},
	} {
		n := int(d / unit.length)
		d -= time.Duration(n) * unit.length
		switch {
		case n == 0:
		case lang == "zh":
			parts = append(parts, fmt.Sprintf("%d%s", n, unit.zh))
		case n == 1:
			parts = append(parts, "1 "+unit.one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.many))
		}
	}
	switch {
	case len(parts) == 0:
		return handledText(lang, "0秒", "0 seconds")
	case lang == "zh":
		return strings.Join(parts, "")
	}
	return strings.Join(parts, " ")
}

// dayAndClock is a time as people say it: with the day where it is not today.
func dayAndClock(t, now time.Time, lang string) string {
	day := func(t time.Time) int {
		return int(time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	switch day(t) - day(now) {
	case 0:
		return clock(t)
	case 1:
		return handledText(lang, "明天", "tomorrow ") + clock(t)
	}
	if lang == "zh" {
		return fmt.Sprintf("%d月%d日%s", t.Month(), t.Day(), clock(t))
	}
	return t.Format("January 2, ") + clock(t)
}
