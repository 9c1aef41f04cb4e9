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

	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
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

// setAlarm sets when the alarms are looked at next.
func (d *Device) setAlarm() {
	d.alarmAt = time.Time{}
	if len(d.alarms) > 0 {
		d.alarmAt = time.Now().Add(min(time.Until(d.alarms[0].due), maxAlarmWait))
	}
}

// ringAlarms tells all that is due.
func (c *Conversation) ringAlarms() {
	now := time.Now()
	c.dev.alarms = inOrder(c.dev.alarms)
	for len(c.dev.alarms) > 0 && !c.dev.alarms[0].due.After(now) {
		if len(c.dev.notices) >= maxNotices {
			c.dev.alarmAt = now.Add(noticeAfter) // when there is room again
			return
		}
		a := c.dev.alarms[0]
		id := prompts.TimerDue
		if a.text != "" {
			id = prompts.ReminderDue
		}
		say := c.o.Prompts.Phrase(id, a.language, "text", a.text)
		if late := now.Sub(a.due); late > time.Minute {
			say = joinText(say, c.o.Prompts.Phrase(prompts.AlarmLate, a.language, "time", spoken.SayClock(a.due.In(c.o.Zone), text.Lang(a.language))))
		}
		c.tell(notice{language: a.language, ring: true, reminds: a.text != "", say: say})
		c.log.Info("timer is due", "due", a.due, "late", now.Sub(a.due).Round(time.Second))
		c.dev.alarms = c.dev.alarms[1:]
	}
	c.dev.setAlarm()
}

// inOrder is alarms in the order in which they are due: a clock that was set
// has moved those that are for a time of day, and not the others.
func inOrder(alarms []alarm) []alarm {
	return slices.SortedStableFunc(slices.Values(alarms), func(a, b alarm) int { return cmp.Compare(time.Until(a.due), time.Until(b.due)) })
}

var errManyAlarms = errors.New("there are too many timers already")

// handleTimer sets, lists or cancels timers and reminders.
func handleTimer(c *Conversation, from caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.TimerArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	lang := from.lang
	switch a.Action {
	case mcp.TimerSet:
		return c.addAlarm(alarm{due: a.Due, text: a.Text, language: lang, reminder: a.Reminder})
	case mcp.TimerList:
		return think.Handled{Result: c.alarmList(lang), Again: true}, nil
	case mcp.TimerCancel:
		return c.cancelAlarms(a, lang)
	}
	return think.Handled{}, fmt.Errorf("unknown timer action %q", a.Action)
}

func (c *Conversation) addAlarm(a alarm) (think.Handled, error) {
	now := time.Now()
	switch {
	case !a.due.After(now):
		return think.Handled{}, fmt.Errorf("%s: %s", message.In(text.Lang(a.language), "timer-past"), a.due.In(c.o.Zone).Format(time.DateTime))
	case len(c.dev.alarms) >= maxAlarms:
		return think.Handled{}, errManyAlarms
	}
	if !a.reminder {
		a.length = a.due.Sub(now).Round(time.Second)
		a.due = now.Add(a.length) // by the clock that nobody sets
	}
	c.dev.alarms = inOrder(append(slices.Clone(c.dev.alarms), a))
	c.dev.setAlarm()
	if a.reminder {
		return think.Handled{Say: c.o.Prompts.Phrase(prompts.ReminderSet, a.language, "time", spoken.SayTime(a.due.In(c.o.Zone), now.In(c.o.Zone), text.Lang(a.language)))}, nil
	}
	return think.Handled{Say: c.o.Prompts.Phrase(prompts.TimerSet, a.language, "duration", spoken.SayDuration(a.length, text.Lang(a.language)))}, nil
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
		return message.In(text.Lang(lang), "timer-none")
	}
	now := time.Now()
	views := make([]alarmView, len(c.dev.alarms))
	for i, a := range c.dev.alarms {
		views[i] = alarmView{Due: spoken.SayTime(a.due.In(c.o.Zone), now.In(c.o.Zone), text.Lang(lang)), Left: spoken.SayDuration(a.due.Sub(now), text.Lang(lang)), Text: a.text}
		if a.length > 0 {
			views[i].Length = spoken.SayDuration(a.length, text.Lang(lang))
		}
	}
	list, err := json.Marshal(views)
	if err != nil {
		return err.Error()
	}
	return string(list)
}

// cancelAlarms gives up all alarms, those that the words mean, or, when no words
// are given, the only one.
func (c *Conversation) cancelAlarms(a mcp.TimerArgs, lang string) (think.Handled, error) {
	before := len(c.dev.alarms)
	switch {
	case a.All:
		c.dev.alarms = nil
	case bare(a.Text) != "":
		c.dev.alarms = slices.DeleteFunc(slices.Clone(c.dev.alarms), func(al alarm) bool { return al.isMeant(a.Text, time.Now().In(c.o.Zone)) })
	case before == 1:
		c.dev.alarms = nil
	}
	c.dev.setAlarm()
	switch {
	case before == 0:
		return think.Handled{Result: c.alarmList(lang), Again: true}, nil
	case len(c.dev.alarms) == before:
		return think.Handled{Result: message.In(text.Lang(lang), "timer-which") + c.alarmList(lang), Again: true}, nil
	}
	return think.Handled{Say: c.o.Prompts.Phrase(prompts.TimerCancelled, lang)}, nil
}

// isMeant reports whether words mean the alarm: by its text, by its length, or
// by exactly the time at which it is due.
func (a alarm) isMeant(words string, now time.Time) bool {
	words = bare(words)
	if own := bare(a.text); own != "" && (strings.Contains(words, own) || strings.Contains(own, words)) {
		return true
	}
	due := a.due.In(now.Location())
	for _, lang := range []text.Lang{text.Chinese, text.English} {
		if words == bare(spoken.SayClock(due, lang)) || words == bare(spoken.SayTime(due, now, lang)) {
			return true
		}
		length := strings.TrimSuffix(bare(spoken.SayDuration(a.length, lang)), "s")
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
