package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

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
	length   time.Duration // that was asked for; 0 for a reminder
}

// maxAlarmWait is how soon the clock is looked at again, which may be set while
// an alarm waits.
const maxAlarmWait = time.Minute

// setAlarm sets the timer of the next alarm.
func (c *Conversation) setAlarm() {
	if len(c.dev.alarms) == 0 {
		c.alarm.Stop()
		return
	}
	c.alarm.Reset(min(time.Until(c.dev.alarms[0].due), maxAlarmWait))
}

// ringAlarms tells all that is due.
func (c *Conversation) ringAlarms() {
	now := time.Now()
	c.dev.alarms = inOrder(c.dev.alarms)
	for len(c.dev.alarms) > 0 && !c.dev.alarms[0].due.After(now) {
		if len(c.dev.notices) >= maxNotices {
			c.alarm.Reset(noticeAfter) // when there is room again
			return
		}
		a := c.dev.alarms[0]
		id := prompts.TimerDue
		if a.text != "" {
			id = prompts.ReminderDue
		}
		text := c.o.Prompts.Phrase(id, a.language, "text", a.text)
		if late := now.Sub(a.due); late > time.Minute {
			text = joinText(text, c.o.Prompts.Phrase(prompts.AlarmLate, a.language, "time", clock(a.due.In(c.o.Zone), a.language)))
		}
		c.tell(notice{language: a.language, ring: true, reminds: a.text != "", say: text})
		c.log.Info("timer is due", "due", a.due, "late", now.Sub(a.due).Round(time.Second))
		c.dev.alarms = c.dev.alarms[1:]
	}
	c.setAlarm()
}

// inOrder is alarms in the order in which they are due: a clock that was set
// has moved those that are for a time of day, and not the others.
func inOrder(alarms []alarm) []alarm {
	return slices.SortedStableFunc(slices.Values(alarms), func(a, b alarm) int { return cmp.Compare(time.Until(a.due), time.Until(b.due)) })
}

// clock is a time of day as people say it: 7:05, 7点05分.
func clock(t time.Time, lang string) string {
	switch {
	case lang != "zh":
		return fmt.Sprintf("%d:%02d", t.Hour(), t.Minute())
	case t.Minute() == 0:
		return fmt.Sprintf("%d点", t.Hour())
	}
	return fmt.Sprintf("%d点%02d分", t.Hour(), t.Minute())
}

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
	if !a.reminder {
		a.length = a.due.Sub(now).Round(time.Second)
		a.due = now.Add(a.length) // by the clock that nobody sets
	}
	c.dev.alarms = inOrder(append(slices.Clone(c.dev.alarms), a))
	c.setAlarm()
	if a.reminder {
		return handled{say: c.o.Prompts.Phrase(prompts.ReminderSet, a.language, "time", dayAndClock(a.due.In(c.o.Zone), now.In(c.o.Zone), a.language))}, nil
	}
	return handled{say: c.o.Prompts.Phrase(prompts.TimerSet, a.language, "duration", lengthWords(a.length, a.language))}, nil
}

// alarmView is an alarm as the model sees it.
type alarmView struct {
	Due    string `json:"due"`
	Left   string `json:"left"`
	Length string `json:"length,omitempty"`
	Text   string `json:"text,omitempty"`
}

func (c *Conversation) alarmList(lang string) string {
	if len(c.dev.alarms) == 0 {
		return handledText(lang, "没有定时或提醒。", "there are no timers or reminders.")
	}
	now := time.Now()
	views := make([]alarmView, len(c.dev.alarms))
	for i, a := range c.dev.alarms {
		views[i] = alarmView{Due: dayAndClock(a.due.In(c.o.Zone), now.In(c.o.Zone), lang), Left: lengthWords(a.due.Sub(now), lang), Text: a.text}
		if a.length > 0 {
			views[i].Length = lengthWords(a.length, lang)
		}
	}
	text, err := json.Marshal(views)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// cancelAlarms gives up all alarms, those that the words mean, or, when no words
// are given, the only one.
func (c *Conversation) cancelAlarms(a mcp.TimerArgs, lang string) (handled, error) {
	before := len(c.dev.alarms)
	switch {
	case a.All:
		c.dev.alarms = nil
	case bare(a.Text) != "":
		c.dev.alarms = slices.DeleteFunc(slices.Clone(c.dev.alarms), func(al alarm) bool { return al.isMeant(a.Text, time.Now().In(c.o.Zone)) })
	case before == 1:
		c.dev.alarms = nil
	}
	c.setAlarm()
	switch {
	case before == 0:
		return handled{result: c.alarmList(lang), again: true}, nil
	case len(c.dev.alarms) == before:
		return handled{result: handledText(lang, "没有取消：要说清楚是哪一个。", "nothing was cancelled: say which one. ") + c.alarmList(lang), again: true}, nil
	}
	return handled{say: c.o.Prompts.Phrase(prompts.TimerCancelled, lang)}, nil
}

// isMeant reports whether words mean the alarm: by its text, by its length, or
// by exactly the time at which it is due.
func (a alarm) isMeant(words string, now time.Time) bool {
	words = bare(words)
	if text := bare(a.text); text != "" && (strings.Contains(words, text) || strings.Contains(text, words)) {
		return true
	}
	due := a.due.In(now.Location())
	for _, lang := range []string{"zh", "en"} {
		if words == bare(clock(due, lang)) || words == bare(dayAndClock(due, now, lang)) {
			return true
		}
		length := strings.TrimSuffix(bare(lengthWords(a.length, lang)), "s")
		if a.length > 0 && strings.Contains(words, length) && digits(words) == digits(length) {
			return true
		}
	}
	return words == due.Format("1504")
}

// digits is how many figures a text holds.
func digits(text string) int {
	n := 0
	for _, r := range text {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
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

// dayAndClock is a time as people say it, in English with its preposition: with
// the day where it is not today.
func dayAndClock(t, now time.Time, lang string) string {
	day := func(t time.Time) int {
		return int(time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, time.UTC).Unix() / 86400)
	}
	when := handledText(lang, "", "at ") + clock(t, lang)
	switch day(t) - day(now) {
	case 0:
		return when
	case 1:
		return handledText(lang, "明天", "tomorrow ") + when
	}
	if lang == "zh" {
		return fmt.Sprintf("%d月%d日%s", t.Month(), t.Day(), when)
	}
	return t.Format("on January 2 ") + when
}
