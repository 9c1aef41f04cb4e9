package settings

import (
	"context"
	"errors"
	"slices"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// The time after a change in which it is taken back by itself.
const (
	watchTime = time.Minute
	watchEach = 2 * time.Second
	// fewTurns is after how many turns, of which every one failed, the end of the watch is not waited for.
	fewTurns = 2
)

// watch is the time after a change in which the server is compared with what it was before. Its fields are those of the
// mutex of [Settings].
type watch struct {
	Watch

	was    state  // that is gone back to
	before Health // with that
	anew   bool   // the program has just started: what is not ready yet does no worse
	beyond *watch // that went on when the change came, whose change is not proven either
	stop   context.CancelFunc
}

// observe begins the watch of a revision, with the lock held. One that goes on ends; it begins anew if its revision is gone
// back to.
func (s *Settings) observe(revision int, was state, before Health, undone *watch) {
	beyond := s.watch
	if beyond != nil {
		beyond.stop()
	}
	s.watch = nil
	if undone != nil { // what is gone back to stood its own time, or goes on with it
		if beyond = undone.beyond; beyond == nil {
			return
		}
		turns := before.Turns // those before were the fault of what is taken back
		was, before, beyond = beyond.was, beyond.before, beyond.beyond
		before.Turns = turns
	}
	ctx, stop := context.WithCancel(s.alive)
	w := &watch{Watch: Watch{Revision: revision, Until: time.Now().Add(watchTime)}, was: was, before: before, beyond: beyond, stop: stop}
	s.watch = w
	m := s.machine
	s.watching.Go(func() { s.follow(ctx, m, w) })
}

// Watching tells of the watch that goes on; nil: there is none.
func (s *Settings) Watching() *Watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch == nil {
		return nil
	}
	shown := s.watch.Watch
	return &shown
}

// follow looks at the server until the time of a watch is over or ctx ends.
func (s *Settings) follow(ctx context.Context, m Machine, w *watch) {
	tick := time.NewTicker(watchEach)
	defer tick.Stop()
	end := time.NewTimer(time.Until(w.Until))
	defer end.Stop()
	unready := 0
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-end.C:
			over = true
		case <-ctx.Done():
			return
		}
		now := m.Health()
		if now.Ready {
			unready = 0
		} else {
			unready++
		}
		if s.progress(w, now) {
			s.tell()
		}
		if why := worse(w.before, now, unready, over); why != "" {
			s.fallBack(ctx, w, why)
			return
		}
	}
	s.mu.Lock()
	if s.watch == w {
		s.watch = nil
	}
	s.mu.Unlock()
	s.o.Log.Info("the settings have stood their watch", "revision", w.Revision)
	s.tell()
}

// progress notes how many turns there were, and reports whether there were more than before.
func (s *Settings) progress(w *watch, now Health) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.before.Ready = w.before.Ready || w.anew && now.Ready
	turns := now.Turns - w.before.Turns
	changed := turns != w.Turns
	w.Turns, w.Failed = turns, min(now.Streak, turns)
	return changed
}

// worse says why the server does worse than before; "": it does not. unready is how often in a row it was seen not ready.
func worse(before, now Health, unready int, over bool) string {
	if before.Ready && unready > 1 {
		return inBoth("settings/unready", now.Why)
	}
	turns := now.Turns - before.Turns
	if turns > 0 && before.Streak == 0 && now.Streak >= turns && (over || turns >= fewTurns) {
		return inBoth("settings/all-fail", now.Fault, turns)
	}
	return ""
}

// inBoth returns a message in both languages. What it quotes last may have both too: each takes its half.
func inBoth(id, quoted string, args ...any) string {
	in := func(lang text.Lang) string {
		return message.In(lang, id, append(slices.Clone(args), message.Part(quoted, lang))...)
	}
	return in(text.English) + " / " + in(text.Chinese)
}

// fallBack goes back to what was in force before a watch.
func (s *Settings) fallBack(ctx context.Context, w *watch, why string) {
	err := s.goBack(ctx, w, why)
	if ctx.Err() != nil && err != nil {
		return // somebody has changed it
	}
	s.o.Audit(context.WithoutCancel(ctx), account.Person{Name: byOrSelf(account.Person{})}, "settings.automatic", revisionName(w.Revision), err)
	if err == nil {
		s.o.Log.Warn("a change of the settings was taken back", "revision", w.Revision, "why", why)
		return
	}
	s.o.Log.Error("a change of the settings should be taken back, and cannot be", "revision", w.Revision, "why", why, "err", err)
	s.mu.Lock()
	w.Stuck = why + ": " + err.Error()
	s.mu.Unlock()
	s.tell()
}

func (s *Settings) goBack(ctx context.Context, w *watch, why string) error {
	done, err := s.alone(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return err
	}
	m, err := s.builder()
	if err != nil && !errors.Is(err, ErrReadOnly) {
		return err
	}
	now := s.state()
	p := &planned{kind: KindAutomatic, gone: s.safe.drop, next: state{revision: now.revision + 1, set: w.was.set}}
	if p.next.config, _, err = s.from.load(ctx, p.next.set, p.next.revision); err != nil {
		return err
	}
	p.Changes = p.next.config.Compare(now.config)
	if p.stage, err = m.Build(ctx, p.next.config); err != nil {
		return err
	}
	_, err = s.commit(context.WithoutCancel(ctx), m, p, account.Person{}, why, w)
	return err
}
