package alarm

import (
	"context"
	"errors"
	"time"

	"xiaozhi/agent/think"
	"xiaozhi/internal/recur"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// move changes when the reminder that is meant is due. Of one that recurs all times are changed.
func (a *alarms) move(ctx context.Context, t mcp.TimerArgs, lang text.Lang) (think.Handled, error) {
	all, meant, err := a.meant(ctx, t)
	switch {
	case err != nil:
		return think.Handled{}, err
	case len(all) == 0:
		return think.Handled{Result: a.show(all, lang), Again: true}, nil
	case len(meant) != 1:
		return think.Handled{Result: message.In(lang, "agent/timer-change-which") + a.show(all, lang), Again: true}, nil
	}
	now := time.Now()
	moved, err := meant[0].movedTo(t, now, a.Env().Zone)
	if err != nil {
		return think.Handled{}, refusedMove(err, t.To, lang)
	}
	put := func(r *Reminder) {
		r.Due, r.Length, r.Wall, r.Zone, r.Rule = moved.Due, moved.Length, moved.Wall, moved.Zone, moved.Rule
	}
	if err := a.book.change(ctx, meant[0], Move, put); err != nil {
		return think.Handled{}, err
	}
	a.drop(moved.ID)
	a.book.refresh(ctx, a.owner)
	a.book.looks.by(moved.Due)
	moved.Lang = lang
	if moved.Kind == Timer {
		left := moved.Due.Sub(now).Round(time.Second)
		words := a.Env().Texts.Phrase(prompts.TimerSet, string(lang), "duration", spoken.SayDuration(left, lang))
		return think.Handled{Say: a.orAsleep(words, false, left, lang)}, nil
	}
	return think.Handled{Say: a.confirm(moved, now)}, nil
}

// errRecurs says that a reminder recurs, so that a single day does not tell when it is due from now on.
var errRecurs = errors.New("it recurs")

// movedTo returns a reminder with the time that an order gives it. Words of a length count from now.
func (r Reminder) movedTo(t mcp.TimerArgs, now time.Time, zone *time.Location) (Reminder, error) {
	due := r.Due
	switch {
	case t.To == "" && max(t.By, -t.By) > int64(spoken.MaxDuration/time.Second):
		return r, spoken.ErrTooLong
	case t.To == "":
		due = due.Add(time.Duration(t.By) * time.Second)
	case r.Rule != "":
		return r.recurring(t.To, now, zone)
	default:
		at, _, err := spoken.Reset(t.To, r.Due.In(zone), now.In(zone))
		if err != nil {
			return r, err
		}
		due = at
	}
	if !due.After(now) {
		return r, spoken.ErrPast
	}
	if due.Sub(now) > spoken.MaxDuration {
		return r, spoken.ErrTooLong
	}
	if r.Kind == Timer {
		r.Length += due.Sub(r.Due).Round(time.Second)
		r.Due = due.Truncate(time.Millisecond)
		return r, nil
	}
	return r.at(due, now, zone)
}

// recurring returns a reminder that recurs with another time of day, or in another way if the words say one.
func (r Reminder) recurring(words string, now time.Time, zone *time.Location) (Reminder, error) {
	at, rule, err := spoken.When(words, now.In(zone))
	if err == nil && rule != "" {
		r.Zone = zone.String()
		return r, r.repeat(rule, spoken.Wall(at.In(zone)), zone, now)
	}
	at, named, err := spoken.Reset(words, r.Due.In(zone), now.In(zone))
	if err == nil && named {
		err = errRecurs
	}
	if err != nil {
		return r, err
	}
	return r.at(at, now, zone)
}

// at returns an alert at another time of day, and, of one that does not recur, another day.
func (r Reminder) at(due, now time.Time, zone *time.Location) (Reminder, error) {
	r.Zone, r.Due = zone.String(), due.Truncate(time.Millisecond)
	wall := spoken.Wall(due.In(zone))
	if r.Rule != "" {
		if !recur.OnDays(r.Rule) {
			return r, errRecurs
		}
		if old, err := time.Parse(recur.Layout, r.Wall); err == nil { // the day from which it is counted stays
			wall = time.Date(old.Year(), old.Month(), old.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, time.UTC)
		}
		r.Wall = wall.Format(recur.Layout)
		next, ok := r.following(now)
		if !ok {
			return r, recur.ErrNever
		}
		return next, nil
	}
	r.Wall = wall.Format(recur.Layout)
	return r, nil
}

// refusedMove says why a reminder was not moved.
func refusedMove(err error, words string, lang text.Lang) error {
	switch {
	case errors.Is(err, errRecurs):
		return refuse(lang, "agent/timer-recurs")
	case errors.Is(err, spoken.ErrPast):
		return refuse(lang, "agent/timer-past")
	case errors.Is(err, recur.ErrOften), errors.Is(err, recur.ErrNever), errors.Is(err, recur.ErrRule):
		return refusedRule(err, lang)
	}
	return refuse(lang, "agent/timer-move-unclear", words)
}
