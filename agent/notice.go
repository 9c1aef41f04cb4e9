package agent

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
)

// What the server says without being asked waits in the device's record, so that
// what comes due without a connection is told on the next.

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

// announcements queue what waits to be told on one device. It belongs to the
// conversation that holds the device's record.
type announcements struct {
	waiting []notice // at most maxNews, what was put back, and music
	last    uint64   // the number that was given last
	changes uint64   // counted, for the conversation to notice
}

// tell queues a notice. False: too many are waiting.
func (q *announcements) tell(n notice) bool { return q.add(n, maxNotices) }

// tellNews queues the outcome of a call, which can wait nowhere else.
func (q *announcements) tellNews(n notice, log *slog.Logger) {
	if !q.add(n, maxNews) {
		log.Warn("outcome of a call is not told: too much is waiting", "waiting", len(q.waiting))
	}
}

// add adds a notice to those waiting, unless there are limit already. Music, of
// which there is never more than one, always has its place, which is the last.
func (q *announcements) add(n notice, limit int) bool {
	if n.song == nil && len(q.waiting) >= limit {
		return false
	}
	at := len(q.waiting)
	if n.song == nil && at > 0 && q.waiting[at-1].song != nil {
		at--
	}
	n.id = q.number()
	q.waiting = slices.Insert(slices.Clone(q.waiting), at, n)
	q.changes++
	return true
}

// number returns a number for a notice.
func (q *announcements) number() uint64 {
	q.last++
	return q.last
}

// full reports whether no plain notice is taken.
func (q *announcements) full() bool { return len(q.waiting) >= maxNotices }

// view is the queue as the rules see it.
func (q *announcements) view() turn.Queue {
	if len(q.waiting) == 0 {
		return turn.Queue{}
	}
	n := q.waiting[0]
	return turn.Queue{
		Len: len(q.waiting), Head: n.id, Lang: text.Lang(n.language),
		Music: n.song != nil, Resumes: n.song != nil && n.song.read > 0,
	}
}

// withdraw drops what nobody waits for any more.
func (q *announcements) withdraw() {
	q.waiting = slices.DeleteFunc(slices.Clone(q.waiting), func(n notice) bool { return n.from != nil && n.from.off.Load() })
}

// dropMusic takes music out of what waits.
func (q *announcements) dropMusic() {
	q.waiting = slices.DeleteFunc(slices.Clone(q.waiting), func(n notice) bool { return n.song != nil })
}

// take takes the next notice; plain sentences that wait behind it in the same
// language are said with it.
func (q *announcements) take() notice {
	n, waiting := q.waiting[0], q.waiting[1:]
	parts := []notice{n}
	for len(waiting) > 0 && n.plain() && waiting[0].plain() && waiting[0].language == n.language {
		n.say = text.Join(n.say, waiting[0].say)
		parts = append(parts, waiting[0])
		waiting = waiting[1:]
	}
	if len(parts) > 1 {
		n.parts = parts
	}
	q.waiting = slices.Clone(waiting)
	return n
}

// putBack puts back what nobody has heard anything of.
func (q *announcements) putBack(n ...notice) {
	q.waiting = slices.Concat(n, q.waiting)
	q.changes++
}

// plain reports whether the notice is nothing but words to be spoken.
func (n notice) plain() bool {
	return n.ask == "" && n.song == nil && !n.ring && n.say != "" && n.from == nil
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
		c.dev.news.putBack(n)
	default:
		c.dev.news.putBack(unheard(n.parts, t.out.heard)...)
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
