package alarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/recur"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// handle takes an order about timers. What needs the store is left to the caller, who
// can wait: nothing is confirmed before it is committed.
func (a *alarms) handle(from feature.Caller, args any) (think.Handled, error) {
	t, err := mcp.DecodeArgs[mcp.TimerArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	if !a.known {
		return think.Handled{}, errors.New(message.In(from.Lang, "agent/timer-stranger"))
	}
	order := map[mcp.TimerAction]func(context.Context, mcp.TimerArgs, text.Lang) (think.Handled, error){
		mcp.TimerSet: a.set, mcp.TimerList: a.list, mcp.TimerCancel: a.cancel, mcp.TimerSnooze: a.snooze, mcp.TimerChange: a.move,
	}[t.Action]
	if order == nil {
		return think.Handled{}, fmt.Errorf("unknown timer action %q", t.Action)
	}
	return think.Handled{Finish: func(ctx context.Context) (think.Handled, error) {
		did, err := order(ctx, t, from.Lang)
		if err != nil && ctx.Err() == nil && !isRefusal(err) {
			a.Env().Log.Error("the store of reminders fails", "err", err)
			err = errors.New(message.In(from.Lang, "agent/timer-not-kept"))
		}
		return did, err
	}}, nil
}

// refusal is an error that says why an order is not carried out.
type refusal struct{ error }

func isRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

func refuse(lang text.Lang, id string, args ...any) error {
	return refusal{errors.New(message.In(lang, id, args...))}
}

// set adds a timer or a reminder.
func (a *alarms) set(ctx context.Context, t mcp.TimerArgs, lang text.Lang) (think.Handled, error) {
	now, zone := time.Now(), a.Env().Zone
	r := Reminder{ID: newID(), Device: a.owner, Kind: Timer, State: Armed, Text: t.Text, Lang: lang, Due: t.Due.Truncate(time.Millisecond)}
	if t.Reminder {
		r.Kind, r.Zone = Alert, zone.String()
		wall := spoken.Wall(t.Due.In(zone))
		r.Wall = wall.Format(recur.Layout)
		if t.Repeat != "" {
			if err := r.repeat(t.Repeat, wall, zone, now); err != nil {
				return think.Handled{}, refusedRule(err, lang)
			}
		}
	}
	if !r.Due.After(now) {
		return think.Handled{}, refusal{fmt.Errorf("%s: %s", message.In(lang, "agent/timer-past"), r.Due.In(zone).Format(time.DateTime))}
	}
	if r.Kind == Timer {
		r.Length = r.Due.Sub(now).Round(time.Second)
		r.Due = now.Add(r.Length).Truncate(time.Millisecond)
	}
	a.adding.Lock()
	err := a.book.add(ctx, r)
	a.adding.Unlock()
	if err != nil {
		if errors.Is(err, ErrFull) {
			err = refuse(lang, "agent/timer-many", a.book.limits.Load().most)
		}
		return think.Handled{}, err
	}
	return think.Handled{Say: a.confirm(r, now)}, nil
}

// repeat makes a reminder recur by a rule that begins at wall.
func (r *Reminder) repeat(rule string, wall time.Time, zone *time.Location, now time.Time) error {
	times, due, err := recur.New(rule, wall, zone, now)
	if err != nil {
		return err
	}
	r.Rule, r.Wall, r.Due = times.Rule, times.Wall, due
	return nil
}

func refusedRule(err error, lang text.Lang) error {
	switch {
	case errors.Is(err, recur.ErrOften):
		return refuse(lang, "agent/timer-often", int(recur.MinApart.Minutes()))
	case errors.Is(err, recur.ErrNever):
		return refuse(lang, "agent/timer-never")
	}
	return refusal{fmt.Errorf("%s: %w", message.In(lang, "agent/timer-rule"), err)}
}

// confirm returns the words that a reminder is kept, and, if that is not sure, whether
// its device will hear it in time.
func (a *alarms) confirm(r Reminder, now time.Time) string {
	texts, zone, lang := a.Env().Texts, a.Env().Zone, string(r.Lang)
	words := ""
	switch said := a.repeats(r); {
	case r.Kind == Timer:
		words = texts.Phrase(prompts.TimerSet, lang, "duration", spoken.SayDuration(r.Length, r.Lang))
	case said != "":
		words = texts.Phrase(prompts.ReminderRepeats, lang, "rule", said, "time", spoken.SayTime(r.Due.In(zone), now.In(zone), r.Lang))
	default:
		words = texts.Phrase(prompts.ReminderSet, lang, "time", spoken.SayTime(r.Due.In(zone), now.In(zone), r.Lang))
	}
	return a.orAsleep(words, r.Rule != "", r.Due.Sub(now), r.Lang)
}

// orAsleep adds to the words about a reminder that its device may sleep when it is due,
// if it is not kept awake until then and cannot be woken.
func (a *alarms) orAsleep(words string, recurs bool, wait time.Duration, lang text.Lang) string {
	if a.wakes || !recurs && wait <= a.book.limits.Load().keepOpen {
		return words
	}
	return text.Join(words, a.Env().Texts.Phrase(prompts.ReminderAsleep, string(lang)))
}

// repeats returns how a reminder recurs, in words; "": once, or as no words say.
func (a *alarms) repeats(r Reminder) string {
	wall, err := time.Parse(recur.Layout, r.Wall)
	if r.Rule == "" || err != nil {
		return ""
	}
	return spoken.SayRepeat(r.Rule, wall, r.Lang)
}

// mine returns the reminders of the device that are not over. One that was just told
// is over, although it may not have been committed yet.
func (a *alarms) mine(ctx context.Context) ([]Reminder, error) {
	a.book.queue.catchUp(ctx)
	return a.book.o.Store.Find(ctx, Query{Device: a.owner, States: []State{Armed, Snoozed, Ringing, Missed}})
}

// list lists the reminders for the model.
func (a *alarms) list(ctx context.Context, t mcp.TimerArgs, lang text.Lang) (think.Handled, error) {
	all, err := a.mine(ctx)
	return think.Handled{Result: a.show(all, lang), Again: true}, err
}

// show lists reminders for the model.
func (a *alarms) show(all []Reminder, lang text.Lang) string {
	if len(all) == 0 {
		return message.In(lang, "agent/timer-none")
	}
	now, zone := time.Now(), a.Env().Zone
	views := make([]struct {
		Due     string `json:"due"`
		Left    string `json:"left,omitempty"`
		Length  string `json:"length,omitempty"`
		Text    string `json:"text,omitempty"`
		Repeats string `json:"repeats,omitempty"`
		State   string `json:"state,omitempty"`
	}, len(all))
	for i, r := range all {
		v := &views[i]
		v.Text = r.Text
		if v.Due = spoken.SayTime(r.Due.In(zone), now.In(zone), lang); r.Due.After(now) {
			v.Left = spoken.SayDuration(r.Due.Sub(now), lang)
		} else {
			v.Due = spoken.SayPast(r.Due.In(zone), now.In(zone), lang)
		}
		if r.Length > 0 {
			v.Length = spoken.SayDuration(r.Length, lang)
		}
		r.Lang = lang
		if v.Repeats = a.repeats(r); v.Repeats == "" {
			v.Repeats = r.Rule
		}
		if r.State != Armed {
			v.State = string(r.State)
		}
	}
	shown, _ := json.Marshal(views) // texts can always be encoded
	return string(shown)
}

// cancel gives up all reminders, those of a kind, those that the words mean, or, when no
// words are given, the only one.
func (a *alarms) cancel(ctx context.Context, t mcp.TimerArgs, lang text.Lang) (think.Handled, error) {
	all, meant, err := a.meant(ctx, t)
	if err != nil {
		return think.Handled{}, err
	}
	if len(all) == 0 {
		return think.Handled{Result: a.show(all, lang), Again: true}, nil
	}
	_, clock := spoken.AtClock(t.Text, time.Now().In(a.Env().Zone))
	if len(meant) == 0 || clock && !t.All && len(meant) > 1 { // seven in the morning, or in the evening?
		return think.Handled{Result: message.In(lang, "agent/timer-which") + a.show(all, lang), Again: true}, nil
	}
	for _, r := range meant {
		if err := a.book.change(ctx, r, Delete, nil); err != nil {
			return think.Handled{}, err
		}
		a.drop(r.ID)
	}
	a.book.refresh(ctx, a.owner)
	return think.Handled{Say: a.Env().Texts.Phrase(prompts.TimerCancelled, string(lang))}, nil
}

// meant returns the reminders of the device, of the kind that an order names if there are any, and those of them that its words
// mean; without words, the only one.
func (a *alarms) meant(ctx context.Context, t mcp.TimerArgs) (all, meant []Reminder, err error) {
	if all, err = a.mine(ctx); err != nil {
		return nil, nil, err
	}
	if t.Kind != "" {
		if kind := slices.DeleteFunc(slices.Clone(all), func(r Reminder) bool { return !r.isKind(Kind(t.Kind)) }); len(kind) > 0 || t.All {
			all = kind
		}
	}
	now := time.Now().In(a.Env().Zone)
	return all, slices.DeleteFunc(slices.Clone(all), func(r Reminder) bool {
		return !t.All && (len(all) > 1 || text.Bare(t.Text) != "") && !r.isMeant(t.Text, now)
	}), nil
}

// snooze puts off what rings, or has rung lately. If there is nothing, a timer of that
// length is set.
func (a *alarms) snooze(ctx context.Context, t mcp.TimerArgs, lang text.Lang) (think.Handled, error) {
	all, err := a.book.o.Store.Find(ctx, Query{Device: a.owner})
	if err != nil {
		return think.Handled{}, err
	}
	now := time.Now()
	length := t.Due.Sub(now).Round(time.Second)
	if length <= 0 {
		length = 10 * time.Minute
	}
	var last *Reminder
	for i, r := range all {
		if r.State != Deleted && !r.Rang.IsZero() && now.Sub(r.Rang) <= rangLately && (last == nil || r.Rang.After(last.Rang)) {
			last = &all[i]
		}
	}
	if last == nil {
		return a.set(ctx, mcp.TimerArgs{Action: mcp.TimerSet, Due: now.Add(length)}, lang)
	}
	put := func(r *Reminder) { r.Due = now.Add(length).Truncate(time.Millisecond) }
	if err := a.book.change(ctx, *last, Snooze, put); err != nil {
		return think.Handled{}, err
	}
	a.drop(last.ID)
	a.book.refresh(ctx, a.owner)
	a.book.looks.by(now.Add(length))
	words := a.Env().Texts.Phrase(prompts.TimerSet, string(lang), "duration", spoken.SayDuration(length, lang))
	return think.Handled{Say: a.orAsleep(words, false, length, lang)}, nil
}

// add commits a reminder, unless its device has too many. For one device it is called by
// one goroutine at a time.
func (b *Book) add(ctx context.Context, r Reminder) error {
	if err := b.followClock(ctx); err != nil {
		return err
	}
	b.setting.RLock()
	defer b.setting.RUnlock()
	all, err := b.o.Store.Find(ctx, Query{Device: r.Device, States: []State{Armed, Snoozed, Ringing, Missed}})
	if err != nil {
		return err
	}
	if len(all) >= b.limits.Load().most {
		return ErrFull
	}
	if err := b.o.Store.Add(ctx, r); err != nil {
		return err
	}
	b.refresh(ctx, r.Device)
	b.looks.by(r.Due)
	return nil
}

// isKind reports whether a reminder is what people call one, or a timer: whatever tells
// something is a reminder, also after a length of time.
func (r Reminder) isKind(k Kind) bool { return r.Kind == k || k == Alert && r.Text != "" }

// isMeant reports whether words mean a reminder: by its text, by its length, or by the
// time or day at which it is due.
func (r Reminder) isMeant(said string, now time.Time) bool {
	words := text.Bare(said)
	if own := text.Bare(r.Text); own != "" && words != "" && (strings.Contains(words, own) || strings.Contains(own, words)) {
		return true
	}
	due := r.Due.In(now.Location())
	if at, clock := spoken.AtClock(said, due); clock {
		return at
	}
	if in, part := spoken.InPart(said, due, now); part {
		return in
	}
	if day, err := spoken.Day(said, now); err == nil { // tomorrow's alarm
		return day.Format(time.DateOnly) == due.Format(time.DateOnly)
	}
	if at, err := spoken.Time(said, now); err == nil && at.Truncate(time.Minute).Equal(due.Truncate(time.Minute)) {
		return true
	}
	for _, lang := range []text.Lang{text.Chinese, text.English, r.Lang} {
		length := strings.TrimSuffix(text.Bare(spoken.SayDuration(r.Length, lang)), "s")
		if r.Length > 0 && strings.Contains(words, length) && digits(words) == digits(length) {
			return true
		}
	}
	return false
}

func digits(words string) (n int) {
	for _, r := range words {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

func isAbort(cause error) bool { return errors.Is(cause, turn.ErrAborted) }
