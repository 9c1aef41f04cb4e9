package agent

import (
	"iter"
	"slices"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

const (
	maxWaiting = 8  // announcements of one device; more are refused
	maxOwed    = 32 // the same for those that can wait nowhere else
)

// announcement is one that waits, or is being told.
type announcement struct {
	feature.Announcement

	id    uint64                            // on this device
	parts []announcement                    // those that it was made of, in their order; nil: it is one
	sound iter.Seq2[providers.Sound, error] // of Sound, when its turn has begun
}

// announcements queue what waits to be told on one device. What comes due without
// a connection waits in the device's record for the next. They belong to the
// conversation that holds the record.
type announcements struct {
	waiting []announcement // at most maxOwed, what was put back, and music
	urgent  []announcement // to be told at once, and not begun yet
	last    uint64         // the number that was given last
	quiet   bool           // only what was asked for is told
	changed bool           // since the rules have looked
}

// add takes an announcement, unless too many wait, and gives its number. Of those in
// the background there is never more than one: it always has its place, the last.
func (q *announcements) add(a feature.Announcement) (id uint64, ok bool) {
	limit := maxWaiting
	if a.Owed {
		limit = maxOwed
	}
	waiting := len(q.waiting)
	if a.Asked { // what is held back takes no place from it
		waiting = len(q.due())
	}
	if !a.Now && !a.First && !a.Background && waiting >= limit {
		return 0, false
	}
	q.last++
	n := announcement{Announcement: a, id: q.last}
	if a.Now {
		q.urgent = append(q.urgent, n)
		return n.id, true
	}
	at := len(q.waiting)
	if !a.Background && at > 0 && q.waiting[at-1].Background {
		at--
	}
	if a.First {
		at = slices.IndexFunc(q.waiting, func(n announcement) bool { return !n.First })
		at = max(at, 0)
	}
	q.waiting = slices.Insert(slices.Clone(q.waiting), at, n)
	q.changed = true
	return n.id, true
}

// due returns what may be told now, in its order.
func (q *announcements) due() []announcement {
	if !q.quiet {
		return q.waiting
	}
	return slices.DeleteFunc(slices.Clone(q.waiting), func(n announcement) bool { return !n.Asked })
}

// setQuiet begins or ends quiet mode. From then on what nobody has asked for is held back,
// but for what somebody waits for: that is given up, and returned.
func (q *announcements) setQuiet(on bool) (given []announcement) {
	q.quiet, q.changed = on, true
	if !on {
		return nil
	}
	for _, n := range q.waiting {
		if !n.Asked && n.Done != nil {
			given = append(given, n)
		}
	}
	q.remove(func(n announcement) bool { return !n.Asked && n.Done != nil })
	return given
}

func (q *announcements) view() turn.Queue {
	due := q.due()
	if len(due) == 0 {
		return turn.Queue{}
	}
	n := due[0]
	return turn.Queue{Len: len(due), Head: n.id, Lang: n.Lang, Music: n.Background, Resumes: n.Resumes}
}

// remove takes back what waits for its time.
func (q *announcements) remove(is func(announcement) bool) {
	q.waiting = slices.DeleteFunc(slices.Clone(q.waiting), is)
}

// drop takes back what was to be told at once.
func (q *announcements) drop(id uint64) (n announcement, ok bool) {
	i := slices.IndexFunc(q.urgent, func(n announcement) bool { return n.id == id })
	if i < 0 {
		return announcement{}, false
	}
	n = q.urgent[i]
	q.urgent = slices.Delete(q.urgent, i, i+1)
	return n, true
}

// take takes what was to be told at once under a number, else what is due first;
// plain sentences that wait behind it in the same language are said with it.
func (q *announcements) take(id uint64) *announcement {
	if n, ok := q.drop(id); ok {
		return &n
	}
	due := q.due()
	n, due := due[0], due[1:]
	parts := []announcement{n}
	for len(due) > 0 && n.plain() && due[0].plain() && due[0].Lang == n.Lang {
		n.Text = text.Join(n.Text, due[0].Text)
		parts = append(parts, due[0])
		due = due[1:]
	}
	q.remove(func(n announcement) bool {
		return slices.ContainsFunc(parts, func(p announcement) bool { return p.id == n.id })
	})
	if len(parts) > 1 {
		n.parts = parts
	}
	return &n
}

// putBack puts back what the user has heard nothing of.
func (q *announcements) putBack(n ...announcement) {
	q.waiting = slices.Concat(n, q.waiting)
	q.changed = true
}

// forsake removes the announcements whose caller has been told that the
// conversation is over.
func (q *announcements) forsake() {
	q.urgent = nil
	q.remove(func(n announcement) bool { return n.Done != nil })
}

// plain reports whether an announcement is nothing but words to be spoken.
func (n announcement) plain() bool {
	return n.Text != "" && n.Instruction == "" && n.Sound == nil && n.Done == nil && n.Answer == nil
}

// unheard returns the parts of which none of the first heard characters is one.
func unheard(parts []announcement, heard int) []announcement {
	for len(parts) > 0 && heard > 0 {
		heard -= len([]rune(parts[0].Text)) + 1
		parts = parts[1:]
	}
	return parts
}
