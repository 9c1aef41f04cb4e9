package agent

import (
	"errors"
	"slices"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
)

// This file is what the server says without being asked: server turns
// (style.md, "A turn"). They wait in the device's record, so that what comes
// due without a connection is told on the next.

const (
	maxNotices  = 8           // waiting for one device; more are refused
	maxNews     = 32          // the same for outcomes of calls, which cannot wait elsewhere
	noticeAfter = time.Second // until a full queue is tried again
)

// notice is one thing to be told. One that is not told because its turn was cut
// before anything of it was heard, waits again.
type notice struct {
	id       uint64   // on this device
	language string   // "zh" or "en"
	ring     bool     // a chime comes first
	reminds  bool     // its words say more than the chime
	say      string   // spoken as it is
	parts    []notice // the notices that it was made of, in their order; nil: it is one
	// ask is told to the model instead, which words it; say is what is spoken
	// when the model fails.
	ask  string
	song *playing // goes on playing; nothing else is set
	from *request // somebody outside who waits for it; nil: nobody
}

// tell queues a notice. False: too many are waiting.
func (c *Conversation) tell(n notice) bool { return c.queue(n, maxNotices) }

// tellNews queues the outcome of a call.
func (c *Conversation) tellNews(n notice) {
	if !c.queue(n, maxNews) {
		c.log.Warn("outcome of a call is not told: too much is waiting", "waiting", len(c.dev.notices))
	}
}

// queue adds a notice to those waiting, unless there are limit already. Music,
// of which there is never more than one, always has its place, which is the last.
func (c *Conversation) queue(n notice, limit int) bool {
	waiting := c.dev.notices
	if n.song == nil && len(waiting) >= limit {
		return false
	}
	at := len(waiting)
	if n.song == nil && at > 0 && waiting[at-1].song != nil {
		at--
	}
	n.id = c.dev.nextNotice()
	c.dev.notices = slices.Insert(slices.Clone(waiting), at, n)
	c.step(turn.Queued{})
	return true
}

// nextNotice is a number for a notice.
func (d *Device) nextNotice() uint64 {
	d.noticeID++
	return d.noticeID
}

// queue is what waits to be told, as the rules see it.
func (d *Device) queue() turn.Queue {
	if len(d.notices) == 0 {
		return turn.Queue{}
	}
	n := d.notices[0]
	return turn.Queue{
		Len: len(d.notices), Head: n.id, Lang: text.Lang(n.language),
		Music: n.song != nil, Resumes: n.song != nil && n.song.read > 0,
	}
}

// withdraw drops what nobody waits for any more.
func (d *Device) withdraw() {
	d.notices = slices.DeleteFunc(slices.Clone(d.notices), func(n notice) bool { return n.from != nil && n.from.off.Load() })
}

// takeNotice is the next notice; plain sentences that wait behind it in the
// same language are said with it.
func (d *Device) takeNotice() notice {
	waiting := d.notices
	n := waiting[0]
	waiting = waiting[1:]
	parts := []notice{n}
	for len(waiting) > 0 && n.plain() && waiting[0].plain() && waiting[0].language == n.language {
		n.say = joinText(n.say, waiting[0].say)
		parts = append(parts, waiting[0])
		waiting = waiting[1:]
	}
	if len(parts) > 1 {
		n.parts = parts
	}
	d.notices = append([]notice(nil), waiting...)
	return n
}

// plain reports whether the notice is nothing but words to be spoken.
func (n notice) plain() bool {
	return n.ask == "" && n.song == nil && !n.ring && n.say != "" && n.from == nil
}

// untold puts back what nobody has heard anything of.
func (c *Conversation) untold(n ...notice) {
	c.dev.notices = slices.Concat(n, c.dev.notices)
	c.step(turn.Queued{})
}

// noticeOver puts back what was not heard of a notice, and music that was paused.
func (c *Conversation) noticeOver(t *reply, n notice) {
	switch {
	case n.song != nil:
		c.songOver(t, n.song)
	case n.from != nil:
		requestOver(t, n.from)
	case !t.out.cut || errors.Is(t.out.cause, turn.ErrFailed):
	case n.ring && t.out.played > 0 && (!n.reminds || errors.Is(t.out.cause, turn.ErrAborted)):
		// The bell was heard, and it says all, or the button has ended it.
	case t.out.heard == 0:
		c.untold(n)
	default:
		c.untold(unheard(n.parts, t.out.heard)...)
	}
}

// unheard are those parts of which no character is among the first heard.
func unheard(parts []notice, heard int) []notice {
	for len(parts) > 0 && heard > 0 {
		heard -= len([]rune(parts[0].say)) + 1
		parts = parts[1:]
	}
	return parts
}
