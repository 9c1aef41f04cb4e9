package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// alarms are the timers and reminders of one device, in the order in which they
// are due.
type alarms struct {
	list []alarm
	at   time.Time // when the clock is looked at next; zero: never
}

// alarmTexts are the phrases and the time zone of alarms.
type alarmTexts struct {
	phrases *prompts.Set
	zone    *time.Location
}

// set takes in a list, and when it is looked at next.
func (a *alarms) set(list []alarm) {
	a.list, a.at = list, time.Time{}
	if len(list) > 0 {
		a.at = time.Now().Add(min(time.Until(list[0].due), maxAlarmWait))
	}
}

// ring queues all that is due.
func (a *alarms) ring(q *announcements, t alarmTexts, log *slog.Logger) {
	now := time.Now()
	list := inOrder(a.list)
	for len(list) > 0 && !list[0].due.After(now) {
		if q.full() {
			a.list, a.at = list, now.Add(noticeAfter) // when there is room again
			return
		}
		due := list[0]
		id := prompts.TimerDue
		if due.text != "" {
			id = prompts.ReminderDue
		}
		words := t.phrases.Phrase(id, due.language, "text", due.text)
		if late := now.Sub(due.due); late > time.Minute {
			words = text.Join(words, t.phrases.Phrase(prompts.AlarmLate, due.language, "time", spoken.SayClock(due.due.In(t.zone), text.Lang(due.language))))
		}
		q.tell(notice{language: due.language, ring: true, reminds: due.text != "", say: words})
		log.Info("timer is due", "due", due.due, "late", now.Sub(due.due).Round(time.Second))
		list = list[1:]
	}
	a.set(list)
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
	alarms, texts := &c.dev.alarms, alarmTexts{c.o.Prompts, c.o.Zone}
	switch a.Action {
	case mcp.TimerSet:
		return alarms.add(alarm{due: a.Due, text: a.Text, language: lang, reminder: a.Reminder}, texts)
	case mcp.TimerList:
		return think.Handled{Result: alarms.show(text.Lang(lang), texts), Again: true}, nil
	case mcp.TimerCancel:
		return alarms.cancel(a, text.Lang(lang), texts), nil
	}
	return think.Handled{}, fmt.Errorf("unknown timer action %q", a.Action)
}

// add sets an alarm.
func (a *alarms) add(n alarm, t alarmTexts) (think.Handled, error) {
	now := time.Now()
	lang := text.Lang(n.language)
	switch {
	case !n.due.After(now):
		return think.Handled{}, fmt.Errorf("%s: %s", message.In(lang, "agent/timer-past"), n.due.In(t.zone).Format(time.DateTime))
	case len(a.list) >= maxAlarms:
		return think.Handled{}, errManyAlarms
	}
	if !n.reminder {
		n.length = n.due.Sub(now).Round(time.Second)
		n.due = now.Add(n.length) // by the clock that nobody sets
	}
	a.set(inOrder(append(slices.Clone(a.list), n)))
	if n.reminder {
		return think.Handled{Say: t.phrases.Phrase(prompts.ReminderSet, n.language, "time", spoken.SayTime(n.due.In(t.zone), now.In(t.zone), lang))}, nil
	}
	return think.Handled{Say: t.phrases.Phrase(prompts.TimerSet, n.language, "duration", spoken.SayDuration(n.length, lang))}, nil
}

// alarmView is an alarm as the model sees it.
type alarmView struct {
	Due    string `json:"due"`
	Left   string `json:"left"`
	Length string `json:"length,omitempty"`
	Text   string `json:"text,omitempty"`
}

// show lists the alarms for the model.
func (a *alarms) show(lang text.Lang, t alarmTexts) string {
	if len(a.list) == 0 {
		return message.In(lang, "agent/timer-none")
	}
	now := time.Now()
	views := make([]alarmView, len(a.list))
	for i, n := range a.list {
		views[i] = alarmView{Due: spoken.SayTime(n.due.In(t.zone), now.In(t.zone), lang), Left: spoken.SayDuration(n.due.Sub(now), lang), Text: n.text}
		if n.length > 0 {
			views[i].Length = spoken.SayDuration(n.length, lang)
		}
	}
	list, err := json.Marshal(views)
	if err != nil {
		return err.Error()
	}
	return string(list)
}

// cancel gives up all alarms, those that the words mean, or, when no words are
// given, the only one.
func (a *alarms) cancel(args mcp.TimerArgs, lang text.Lang, t alarmTexts) think.Handled {
	before, left := len(a.list), a.list
	switch {
	case args.All:
		left = nil
	case text.Bare(args.Text) != "":
		left = slices.DeleteFunc(slices.Clone(left), func(n alarm) bool { return n.isMeant(args.Text, time.Now().In(t.zone)) })
	case before == 1:
		left = nil
	}
	a.set(left)
	switch {
	case before == 0:
		return think.Handled{Result: a.show(lang, t), Again: true}
	case len(left) == before:
		return think.Handled{Result: message.In(lang, "agent/timer-which") + a.show(lang, t), Again: true}
	}
	return think.Handled{Say: t.phrases.Phrase(prompts.TimerCancelled, string(lang))}
}

// isMeant reports whether words mean the alarm: by its text, by its length, or
// by exactly the time at which it is due.
func (a alarm) isMeant(words string, now time.Time) bool {
	words = text.Bare(words)
	if own := text.Bare(a.text); own != "" && (strings.Contains(words, own) || strings.Contains(own, words)) {
		return true
	}
	due := a.due.In(now.Location())
	for _, lang := range []text.Lang{text.Chinese, text.English} {
		if words == text.Bare(spoken.SayClock(due, lang)) || words == text.Bare(spoken.SayTime(due, now, lang)) {
			return true
		}
		length := strings.TrimSuffix(text.Bare(spoken.SayDuration(a.length, lang)), "s")
		if a.length > 0 && strings.Contains(words, length) && digits(words) == digits(length) {
			return true
		}
	}
	return words == due.Format("1504")
}

// digits counts the figures in a text.
func digits(text string) int {
	n := 0
	for _, r := range text {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}
