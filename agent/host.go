package agent

import (
	"context"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
)

// host is the conversation as its features see it.
type host struct{ c *Conversation }

// Env returns what stays the same.
func (h host) Env() feature.Env {
	c := h.c
	return feature.Env{Session: c.session, Texts: c.o.Prompts, Zone: c.o.Zone, Tools: c.tools, Log: c.log}
}

// Lang returns what is spoken when no text tells the language.
func (h host) Lang() text.Lang { return text.Lang(h.c.language()) }

// State returns a copy of the state.
func (h host) State() turn.State { return h.c.state }

// Step moves the state.
func (h host) Step(e turn.Event) { h.c.step(e) }

// Announce queues an announcement, or begins it.
func (h host) Announce(a feature.Announcement) (uint64, error) {
	c := h.c
	id, ok := c.dev.queue.add(a)
	switch {
	case !ok && a.Owed:
		c.log.Warn("outcome of a call is not told: too much is waiting", "waiting", len(c.dev.queue.waiting))
		return 0, feature.ErrQueueFull
	case !ok:
		return 0, feature.ErrQueueFull
	case a.Now:
		c.step(turn.Interrupt{Announcement: id, Lang: a.Lang})
	}
	return id, nil
}

// Withdraw takes an announcement back that waits, and closes its question.
func (h host) Withdraw(id uint64) {
	c := h.c
	c.dev.queue.remove(func(n announcement) bool { return n.id == id })
	if c.reply != nil && c.reply.order.tells != nil && c.reply.order.tells.id == id {
		c.reply.marks.withdrawn = true
	}
	if c.asked.id == id && c.asked.answer != nil {
		c.asked.answer = nil
		c.step(turn.Withdraw{ID: id})
	}
}

// SetResult corrects the history.
func (h host) SetResult(callID, result string) { h.c.dev.history.SetResult(callID, result) }

// Post hands f to the loop.
func (h host) Post(f func()) { h.c.post(f) }

// Ended reports whether the context of Run has ended.
func (h host) Ended() bool {
	select {
	case <-h.c.life.ended:
		return true
	default:
		return false
	}
}

// Handle runs a handler.
func (h host) Handle(name string, from feature.Caller, args any) (think.Handled, error) {
	return h.c.handle(name, from, args)
}

// Do runs f on the conversation's goroutine, which f must not hold up. The error
// is f's, or why f was not run: ctx or the conversation has ended. It may be called at any time.
func (c *Conversation) Do(ctx context.Context, f func(feature.Host) error) error {
	post := func(v any) {
		select {
		case c.events <- v:
		case <-ctx.Done():
		case <-c.life.over:
		}
	}
	_, err := ask(ctx, post, c.life.over, 0, func() error {
		if c.state.Farewell != turn.Staying {
			return feature.ErrOver
		}
		return f(host{c})
	})
	return err
}

// Over is closed when the conversation has ended.
func (c *Conversation) Over() <-chan struct{} { return c.life.over }
