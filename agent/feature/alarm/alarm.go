// Package alarm keeps the timers and reminders of a device, and rings them.
package alarm

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

const (
	maxAlarms  = 32               // of a device; more are refused
	soon       = 30 * time.Minute // an alarm that is due so soon keeps the channel open
	lookAgain  = time.Minute      // the clock, which may be set, is looked at so often while an alarm waits
	retryAfter = time.Second      // until a full queue of announcements is tried again
)

// alarm is a timer or a reminder that waits for its time.
type alarm struct {
	due      time.Time
	text     string // what to tell; "" for a bare timer
	lang     text.Lang
	reminder bool
	length   time.Duration // that was asked for; 0 for a reminder
}

// list holds alarms in the order in which they are due.
type list []alarm

// Keep returns how long the last alarm, and what tells it, is waited for.
func (l list) Keep(left time.Time) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return feature.KeepWaiting + max(0, l[len(l)-1].due.Sub(left))
}

func (list) Close() {}

// Feature sets, lists, cancels and rings alarms.
type Feature struct{}

// Name is the name of its state.
func (Feature) Name() string { return "alarm" }

// Attach takes in the alarms that were set before.
func (Feature) Attach(h feature.Host, state feature.State) feature.Instance {
	a := &alarms{Host: h}
	if l, ok := state.(list); ok {
		a.set(l)
	}
	return a
}

// alarms are the timers and reminders of a device that is connected.
type alarms struct {
	feature.Host

	list list
	at   time.Time // when the clock is looked at next; zero: never
}

func (a *alarms) Expects(now time.Time) bool {
	return len(a.list) > 0 && a.list[0].due.Sub(now) <= soon
}
func (a *alarms) Detach() feature.State { return a.list }
func (a *alarms) Deadline() time.Time   { return a.at }

func (a *alarms) Handler(name string) feature.Handler {
	if name == mcp.HandlerTimer {
		return a.handle
	}
	return nil
}

// set takes in a list, and when it is looked at next.
func (a *alarms) set(l list) {
	a.list, a.at = l, time.Time{}
	if len(l) > 0 {
		a.at = time.Now().Add(min(time.Until(l[0].due), lookAgain))
	}
}

// Tick has all told that is due.
func (a *alarms) Tick(now time.Time) {
	env, left := a.Env(), inOrder(a.list)
	for len(left) > 0 && !left[0].due.After(now) {
		due := left[0]
		id := prompts.TimerDue
		if due.text != "" {
			id = prompts.ReminderDue
		}
		words := env.Texts.Phrase(id, string(due.lang), "text", due.text)
		late := now.Sub(due.due)
		if late > time.Minute {
			words = text.Join(words, env.Texts.Phrase(prompts.AlarmLate, string(due.lang), "time", spoken.SayClock(due.due.In(env.Zone), due.lang)))
		}
		bell := feature.Announcement{Lang: due.lang, Title: "🔔", Sound: chime, SoundTells: due.text == "", Text: words}
		if _, err := a.Announce(bell); err != nil {
			a.list, a.at = left, now.Add(retryAfter) // when there is room again
			return
		}
		env.Log.Info("timer is due", "due", due.due, "late", late.Round(time.Second))
		left = left[1:]
	}
	a.set(left)
}

// inOrder returns alarms in the order in which they are due: a clock that was set
// has moved those that are for a time of day, and not the others.
func inOrder(l list) list {
	return slices.SortedStableFunc(slices.Values(l), func(a, b alarm) int { return cmp.Compare(time.Until(a.due), time.Until(b.due)) })
}

func (a *alarms) handle(from feature.Caller, args any) (think.Handled, error) {
	t, err := mcp.DecodeArgs[mcp.TimerArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	switch t.Action {
	case mcp.TimerSet:
		return a.add(alarm{due: t.Due, text: t.Text, lang: from.Lang, reminder: t.Reminder})
	case mcp.TimerList:
		return think.Handled{Result: a.show(from.Lang), Again: true}, nil
	case mcp.TimerCancel:
		return a.cancel(t, from.Lang), nil
	}
	return think.Handled{}, fmt.Errorf("unknown timer action %q", t.Action)
}

func (a *alarms) add(n alarm) (think.Handled, error) {
	now, env := time.Now(), a.Env()
	switch {
	case !n.due.After(now):
		return think.Handled{}, fmt.Errorf("%s: %s", message.In(n.lang, "agent/timer-past"), n.due.In(env.Zone).Format(time.DateTime))
	case len(a.list) >= maxAlarms:
		return think.Handled{}, errors.New("there are too many timers already")
	}
	if !n.reminder {
		n.length = n.due.Sub(now).Round(time.Second)
		n.due = now.Add(n.length) // by the clock that nobody sets
	}
	a.set(inOrder(append(slices.Clone(a.list), n)))
	if n.reminder {
		when := spoken.SayTime(n.due.In(env.Zone), now.In(env.Zone), n.lang)
		return think.Handled{Say: env.Texts.Phrase(prompts.ReminderSet, string(n.lang), "time", when)}, nil
	}
	return think.Handled{Say: env.Texts.Phrase(prompts.TimerSet, string(n.lang), "duration", spoken.SayDuration(n.length, n.lang))}, nil
}

// show lists the alarms for the model.
func (a *alarms) show(lang text.Lang) string {
	if len(a.list) == 0 {
		return message.In(lang, "agent/timer-none")
	}
	now, zone := time.Now(), a.Env().Zone
	views := make([]struct {
		Due    string `json:"due"`
		Left   string `json:"left"`
		Length string `json:"length,omitempty"`
		Text   string `json:"text,omitempty"`
	}, len(a.list))
	for i, n := range a.list {
		v := &views[i]
		v.Due, v.Left, v.Text = spoken.SayTime(n.due.In(zone), now.In(zone), lang), spoken.SayDuration(n.due.Sub(now), lang), n.text
		if n.length > 0 {
			v.Length = spoken.SayDuration(n.length, lang)
		}
	}
	all, _ := json.Marshal(views) // texts can always be encoded
	return string(all)
}

// cancel gives up all alarms, those that the words mean, or, when no words are
// given, the only one.
func (a *alarms) cancel(args mcp.TimerArgs, lang text.Lang) think.Handled {
	before, left, env := len(a.list), a.list, a.Env()
	switch {
	case args.All:
		left = nil
	case text.Bare(args.Text) != "":
		left = slices.DeleteFunc(slices.Clone(left), func(n alarm) bool { return n.isMeant(args.Text, time.Now().In(env.Zone)) })
	case before == 1:
		left = nil
	}
	a.set(left)
	switch {
	case before == 0:
		return think.Handled{Result: a.show(lang), Again: true}
	case len(left) == before:
		return think.Handled{Result: message.In(lang, "agent/timer-which") + a.show(lang), Again: true}
	}
	return think.Handled{Say: env.Texts.Phrase(prompts.TimerCancelled, string(lang))}
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

func digits(words string) (n int) {
	for _, r := range words {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// chime is the sound of an alarm: three strokes of a bell, made here.
func chime() iter.Seq2[providers.Sound, error] {
	const rate, stroke = 16000, 0.7 // Hz, s
	return func(yield func(providers.Sound, error) bool) {
		pcm := make([]int16, int(rate*stroke))
		for i := range pcm {
			at := float64(i) / rate
			fade := math.Exp(-5*at) * min(1, at*200)
			v := math.Sin(2*math.Pi*880*at) + 0.5*math.Sin(2*math.Pi*1320*at) + 0.25*math.Sin(2*math.Pi*2217*at)
			pcm[i] = int16(7000 * fade * v)
		}
		for range 3 {
			if !yield(providers.Sound{Rate: rate, PCM: pcm}, nil) {
				return
			}
		}
	}
}
