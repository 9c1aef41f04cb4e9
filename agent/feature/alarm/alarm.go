// Package alarm keeps the timers and reminders of devices, and rings them.
package alarm

import (
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Name is the name of its state, of which a device's record keeps none.
func (b *Book) Name() string { return "alarm" }

// Attach joins a conversation: what its device has missed is told.
func (b *Book) Attach(h feature.Host, _ feature.State) feature.Instance {
	s := h.Env().Session
	a := &alarms{Host: h, book: b, owner: s.DeviceID, known: true}
	if b.o.Owner != nil {
		a.owner, a.known = b.o.Owner(s)
	}
	if b.o.CanBeWoken != nil {
		a.wakes = b.o.CanBeWoken(s)
	}
	if a.known {
		b.join(a)
	}
	return a
}

// alarms are the timers and reminders of a device that is connected.
type alarms struct {
	feature.Host

	book  *Book
	owner string // key of the device
	known bool   // it is no stranger
	wakes bool   // it can be reached without a channel

	queue []*bell   // for which the conversation had no room; on its goroutine
	at    time.Time // when it is tried again; zero: nothing waits
	mute  time.Time // when what no voice could speak is told again; zero: there is none. On its goroutine

	next atomic.Int64 // when the next one is due, in Unix milliseconds; 0: none is

	adding sync.Mutex // held while a reminder is counted and added

	mu    sync.Mutex
	gone  bool
	fresh []*bell // handed over, not yet seen by the conversation
	open  map[string]*bell
}

// bell is a reminder that is being told.
type bell struct {
	kept    Reminder // as the store has it
	telling Reminder // what is told: it is ringing
	times   int      // that it was due up to now
	by      *alarms  // who tells it; nil: nobody
	final   bool     // the store has it as told
	id      uint64   // of its announcement; 0: none yet. On the conversation's goroutine
}

// Expects reports whether one rings, or will soon.
func (a *alarms) Expects(now time.Time) bool {
	a.mu.Lock()
	ringing := len(a.open) > 0
	a.mu.Unlock()
	next := a.next.Load()
	return ringing || next != 0 && time.UnixMilli(next).Sub(now) <= a.book.limits.Load().keepOpen
}

// Detach gives back what was not told.
func (a *alarms) Detach() feature.State {
	a.book.leave(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = true
	for _, o := range a.open {
		a.book.settle(o, Lost)
	}
	a.open, a.fresh = nil, nil
	return nil
}

// Deadline returns when what had no room, or no voice, is tried again.
func (a *alarms) Deadline() time.Time {
	if a.at.IsZero() || !a.mute.IsZero() && a.mute.Before(a.at) {
		return a.mute
	}
	return a.at
}

// Handler returns the handler of timers and reminders.
func (a *alarms) Handler(name string) feature.Handler {
	if name == mcp.HandlerTimer {
		return a.handle
	}
	return nil
}

func (a *alarms) isGone() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone
}

// take takes over a reminder that is to be told. It reports whether the conversation
// is still there. It may be called at any time, and does not wait.
func (a *alarms) take(o *bell) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return false
	}
	if a.open == nil {
		a.open = map[string]*bell{}
	}
	a.open[o.kept.ID], o.by = o, a
	if a.fresh = append(a.fresh, o); len(a.fresh) == 1 {
		a.book.posts.Go(func() { a.Post(a.read) })
	}
	return true
}

// read has told what was handed over.
func (a *alarms) read() {
	a.mu.Lock()
	a.queue, a.fresh = append(a.queue, a.fresh...), nil
	a.mu.Unlock()
	a.Tick(time.Now())
}

// Tick has all told that is due, in its order.
func (a *alarms) Tick(now time.Time) {
	a.at = time.Time{}
	if !a.mute.IsZero() && !now.Before(a.mute) {
		a.mute = time.Time{}
		a.book.load(a)
	}
	for len(a.queue) > 0 {
		o := a.queue[0]
		if a.isOpen(o) && !a.announce(o, now) {
			a.at = now.Add(retryAfter)
			return
		}
		a.queue = a.queue[1:]
	}
}

func (a *alarms) isOpen(o *bell) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[o.kept.ID] == o
}

// announce has a reminder told at the next pause, if there is room for it.
func (a *alarms) announce(o *bell, now time.Time) bool {
	r, texts := o.telling, a.Env().Texts
	id, lang := prompts.TimerDue, r.Lang
	if r.Text != "" {
		id = prompts.ReminderDue
	}
	words := texts.Phrase(id, string(lang), "text", r.Text)
	if now.Sub(r.Due) > time.Minute {
		zone := a.Env().Zone
		words = text.Join(words, texts.Phrase(prompts.AlarmLate, string(lang), "time", spoken.SayPast(r.Due.In(zone), now.In(zone), lang)))
		if o.times > 1 {
			words = text.Join(words, texts.Phrase(prompts.AlarmMissed, string(lang), "count", spoken.SayCount(o.times-1, lang)))
		}
	}
	number, err := a.Announce(feature.Announcement{
		Lang: lang, Title: "🔔", Sound: chime, SoundTells: r.Text == "", Text: words, Asked: true, Done: func(told feature.Told) { a.done(o, told) },
	})
	if err != nil {
		return false
	}
	o.id = number
	return true
}

// done notes what was heard of a reminder. Whoever cuts its words short has heard it,
// unless the connection did. One whose bell alone was heard is told
// again, unless the bell says it all or the button has ended it; one that cannot be
// spoken is told at the next contact, or later to a device that stays.
func (a *alarms) done(o *bell, told feature.Told) {
	if !a.isOpen(o) {
		return
	}
	event := Heard
	switch rang := told.Played > 0; {
	case told.Whole, told.Heard != "" && turn.ByUser(told.Cause), rang && o.telling.Text == "", rang && isAbort(told.Cause):
	case told.Err != nil:
		event = Lost
		a.later(o.telling, time.Now())
	default:
		a.queue = slices.Insert(slices.Clone(a.queue), 0, o)
		a.Tick(time.Now())
		return
	}
	a.mu.Lock()
	delete(a.open, o.kept.ID)
	a.mu.Unlock()
	a.book.settle(o, event)
}

// later has a reminder that no voice could speak told again: after a while, and when it recurs.
func (a *alarms) later(r Reminder, now time.Time) {
	at := now.Add(tellAgain)
	if next, ok := r.following(now); ok && next.Due.Before(at) {
		at = next.Due
	}
	if a.mute.IsZero() || at.Before(a.mute) {
		a.mute = at
	}
}

// drop gives up a reminder that was handed over. It may be called at any time.
func (a *alarms) drop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.open[id]
	if o == nil {
		return
	}
	delete(a.open, id)
	a.book.posts.Go(func() {
		a.Post(func() {
			if o.id != 0 {
				a.Withdraw(o.id)
			}
		})
	})
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
