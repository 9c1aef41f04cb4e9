package agent

import (
	"slices"
	"time"

	"xiaozhi/agent/feature"
)

// features are the instances of one conversation's features.
type features struct {
	all      []feature.Instance // in the order of [Options].Features
	handling []feature.Handling
	timed    []feature.Timed
	lasting  []feature.Lasting
	calls    feature.Calls // nil: there is none
}

// attach joins the features to a conversation that begins.
func (f *features) attach(c *Conversation) {
	for _, one := range c.o.Features {
		in := one.Attach(host{c}, c.dev.states[one.Name()])
		f.all = append(f.all, in)
		if h, ok := in.(feature.Handling); ok {
			f.handling = append(f.handling, h)
		}
		if t, ok := in.(feature.Timed); ok {
			f.timed = append(f.timed, t)
		}
		if l, ok := in.(feature.Lasting); ok {
			f.lasting = append(f.lasting, l)
		}
		if calls, ok := in.(feature.Calls); ok {
			f.calls = calls
		}
	}
}

// detach leaves what the features keep in the device's record.
func (f *features) detach(c *Conversation) {
	for i, in := range f.all {
		if state := in.Detach(); state != nil {
			c.dev.states[c.o.Features[i].Name()] = state
		}
	}
}

// expect reports whether something is to come soon.
func (f *features) expect(now time.Time) bool {
	return slices.ContainsFunc(f.all, func(in feature.Instance) bool { return in.Expects(now) })
}

// handler returns the handler of a name; nil: there is none.
func (f *features) handler(name string) feature.Handler {
	for _, h := range f.handling {
		if handler := h.Handler(name); handler != nil {
			return handler
		}
	}
	return nil
}

// deadline returns when the next tick is due; zero: never.
func (f *features) deadline() (first time.Time) {
	for _, t := range f.timed {
		first = earlier(first, t.Deadline())
	}
	return first
}

// tick has those act whose time has come.
func (f *features) tick(now time.Time) {
	for _, t := range f.timed {
		if at := t.Deadline(); !at.IsZero() && !at.After(now) {
			t.Tick(now)
		}
	}
}

// last reports whether sound in the background plays or is paused.
func (f *features) last() bool { return slices.ContainsFunc(f.lasting, feature.Lasting.Lasts) }

// endSound ends the sound in the background.
func (f *features) endSound() {
	for _, l := range f.lasting {
		l.End()
	}
}

// earlier returns the earlier of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
