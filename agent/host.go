package agent

import (
	"fmt"

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

// Forget clears the history.
func (h host) Forget(turn uint64) {
	c := h.c
	c.dev.history.Clear()
	if c.reply != nil && c.reply.id == turn {
		c.reply.marks.forgotten = true
	}
}

// SetRole changes the prompt.
func (h host) SetRole(name string) bool {
	c := h.c
	if c.dev.role = name; name == c.o.Prompt {
		c.dev.role = ""
	}
	return c.dev.role != ""
}

// Handle runs a handler.
func (h host) Handle(name string, from feature.Caller, args any) (think.Handled, error) {
	if handler := h.c.features.handler(name); handler != nil {
		return handler(from, args)
	}
	return think.Handled{}, fmt.Errorf("there is no handler named %q", name)
}
