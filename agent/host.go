package agent

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// each yields the instances that implement T.
func each[T any](features []feature.Instance) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, in := range features {
			if t, ok := in.(T); ok && !yield(t) {
				return
			}
		}
	}
}

// readiness gets the features of a conversation ready when somebody begins to speak.
type readiness struct{ *Conversation }

// Warm implements [providers.Warmer].
func (r readiness) Warm(ctx context.Context) error {
	var errs []error
	for w := range each[providers.Warmer](r.features) {
		errs = append(errs, w.Warm(ctx))
	}
	return errors.Join(errs...)
}

// host is the conversation as its features see it.
type host struct{ *Conversation }

func (h host) State() turn.State               { return h.state }
func (h host) Step(e turn.Event)               { h.step(e) }
func (h host) Post(f func())                   { h.post(f) }
func (h host) SetResult(callID, result string) { h.dev.history.SetResult(callID, result) }

// Agent is the name of whom the device talks to: of who answers, while somebody does.
func (h host) Agent() string {
	if h.reply != nil {
		return h.reply.by.name
	}
	return h.whom.now().Name
}

// Env may be called by any goroutine.
func (h host) Env() feature.Env {
	env := h.env
	env.Zone = h.whom.o.Load().Zone
	return env
}

func (h host) Ended() bool {
	select {
	case <-h.life.ended:
		return true
	default:
		return false
	}
}

// Quiet may be called by any goroutine.
func (h host) Quiet() bool { return quiet{h.Conversation}.on() }

func (h host) Lang() text.Lang {
	return cmp.Or(h.dev.learned.Lang, h.rules.DeviceLang, text.Chinese)
}

func (h host) Announce(a feature.Announcement) (uint64, error) {
	quiet{h.Conversation}.heed()
	if h.dev.queue.quiet && !a.Asked {
		if a.Done != nil {
			return 0, feature.ErrQuiet
		}
		a.Now = false
	}
	id, ok := h.dev.queue.add(a)
	if !ok {
		if a.Owed {
			h.env.Log.Warn("outcome of a call is not told: too much is waiting", "waiting", len(h.dev.queue.waiting))
		}
		return 0, feature.ErrQueueFull
	}
	if a.Now {
		h.step(turn.Interrupt{Announcement: id, Lang: a.Lang})
	}
	return id, nil
}

func (h host) Withdraw(id uint64) {
	h.dev.queue.remove(func(n announcement) bool { return n.id == id })
	if h.reply != nil && h.reply.order.tells != nil && h.reply.order.tells.id == id {
		h.reply.marks.withdrawn = true
	}
	if h.asked.id == id && h.asked.answer != nil {
		h.asked.answer = nil
		h.step(turn.Withdraw{ID: id})
	}
}

func (h host) Forget(turn uint64) {
	h.dev.history.Clear()
	h.erase()
	if h.reply != nil && h.reply.id == turn {
		h.reply.marks.forgotten = true
	}
}

// Player returns the first feature that is one.
func (h host) Player() feature.Player {
	for p := range each[feature.Player](h.features) {
		return p
	}
	return nil
}

// KeepSound has the sound of what is said be given with the words.
func (h host) KeepSound(on bool) bool {
	on = on && h.o.Voices != nil
	h.mic.keepSound(on)
	return on
}

func (h host) HandlerOf(name string) feature.Handler {
	for in := range each[feature.Handling](h.features) {
		if handler := in.Handler(name); handler != nil {
			return handler
		}
	}
	return nil
}

// Do runs f on the conversation's goroutine, which f must not hold up. The error
// is f's, or why f was not run: ctx or the conversation has ended. It may be called at any time.
func (c *Conversation) Do(ctx context.Context, f func(feature.Host) error) error {
	_, err := c.ask(ctx, 0, func() error {
		if c.state.Farewell.Step >= turn.Leaving {
			return feature.ErrOver
		}
		return f(host{c})
	})
	return err
}

// Over is closed when the conversation has ended.
func (c *Conversation) Over() <-chan struct{} { return c.life.over }

// ask runs f on the conversation's goroutine, for a turn while it has the floor, or,
// with 0, for somebody outside, and waits for it. ran says whether f was run.
// Whoever sets taken first decides: either f runs and is waited for, or it was given
// up, with its turn, ctx or the conversation, and never runs.
func (c *Conversation) ask(ctx context.Context, id uint64, f func() error) (ran bool, err error) {
	var taken atomic.Bool
	done := make(chan error, 1)
	run := func() {
		if (id == 0 || c.state.Runs(id)) && taken.CompareAndSwap(false, true) {
			done <- speak.Protect(c.env.Log, "handler", f)
		}
	}
	select {
	case c.events <- run:
	case <-ctx.Done():
	case <-c.life.over:
	}
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.life.over:
		err = feature.ErrOver
	}
	if taken.CompareAndSwap(false, true) {
		return false, err
	}
	return true, <-done // it runs, and does not wait for anybody
}
