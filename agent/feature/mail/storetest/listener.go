package storetest

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
)

// Listener is a device that comes to a talk, is told what an office has for it, in pieces of time, and may go in the midst of a
// text. It is the [feature.Host] of the office's instance.
type Listener struct {
	feature.Host // none: nothing else is asked of it

	Device  string
	Heard   func(text string)    // is called when the first sound of a text is played
	Takes   func() time.Duration // a text
	Patient bool                 // it hears all to its end, and answers nothing

	rand  *rand.Rand
	tasks chan func() // of its conversation's goroutine
	done  chan struct{}
	turns sync.WaitGroup

	queue []feature.Announcement
	busy  bool
	ended bool
}

// Env returns what the office asks of it.
func (l *Listener) Env() feature.Env {
	return feature.Env{Session: wire.Session{DeviceID: l.Device}, Zone: time.UTC, Log: slog.New(slog.DiscardHandler)}
}

// Lang is English.
func (*Listener) Lang() text.Lang { return text.English }

// Quiet is never on.
func (*Listener) Quiet() bool { return false }

// Player plays nothing.
func (*Listener) Player() feature.Player { return nil }

// Withdraw does nothing: no answer follows anyway.
func (*Listener) Withdraw(uint64) {}

// Post implements [feature.Host].
func (l *Listener) Post(f func()) {
	select {
	case l.tasks <- f:
	case <-l.done:
	}
}

// Announce takes a text, unless three wait.
func (l *Listener) Announce(a feature.Announcement) (uint64, error) {
	if len(l.queue) >= 3 {
		return 0, feature.ErrQueueFull
	}
	l.queue = append(l.queue, a)
	l.next()
	return 1, nil
}

// next begins to tell what waits. It runs on the conversation's goroutine, as all below.
func (l *Listener) next() {
	if l.busy || l.ended || len(l.queue) == 0 {
		return
	}
	a := l.queue[0]
	l.queue, l.busy = l.queue[1:], true
	takes, whole := l.Takes(), l.Patient || l.rand.IntN(4) > 0
	l.turns.Go(func() {
		if err := a.Begin(context.Background()); err != nil {
			l.Post(func() { l.told(a, feature.Told{}) })
			return
		}
		l.Heard(a.Text)
		select {
		case <-time.After(takes):
		case <-l.done: // it has gone
			return
		}
		told := feature.Told{Heard: a.Text, Whole: true}
		if !whole {
			told = feature.Told{Heard: a.Text[:1], Cause: errors.New("cut")}
		}
		l.Post(func() { l.told(a, told) })
	})
}

// told says what was heard; a question is answered then, or never.
func (l *Listener) told(a feature.Announcement, told feature.Told) {
	a.Done(told)
	if a.Answer != nil && !l.Patient && l.rand.IntN(2) == 0 {
		a.Answer(feature.Answer{Words: "yes"})
	}
	l.busy = false
	l.next()
}

// Talk holds a conversation with an office until stop is called, which waits for its end.
func (l *Listener) Talk(office *mail.Office, seed uint64) (stop func()) {
	l.rand = rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a storm that can be raised again
	l.tasks, l.done = make(chan func()), make(chan struct{})
	end, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		instance := office.Attach(l, nil)
		timed, _ := instance.(feature.Timed)
		for {
			var due <-chan time.Time
			if at := timed.Deadline(); !at.IsZero() {
				due = time.After(time.Until(at))
			}
			select {
			case f := <-l.tasks:
				f()
			case <-due:
				timed.Tick(time.Now())
			case <-end:
				l.ended = true
				close(l.done)
				instance.Detach()
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(end)
		<-over
		l.turns.Wait()
	})
}
