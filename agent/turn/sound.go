package turn

import "slices"

// An utterance whose sound is answered, by who hears and speaks by itself, has no text
// as long as nobody needs one. Its words are read by a recogniser where they decide: over a
// reply, after a question, while there is music. Without a recogniser voice that is long
// enough is a request.

// unread handles the report that there is only sound of an utterance, or that its words
// could not be read. It reports whether its words are read now.
func unread(x *step, u *Utterance) (reads bool) {
	over := x.isOver(u)
	switch {
	case u.Text.Status == Unread:
		u.Sound = true
		if reads = x.Reads && u.Role != Live && (over || x.Consent.ID != 0 || x.Asked != 0 || x.seen.Song); reads {
			read(x, u)
		}
	case u.Sound && u.Role != Live && (u.Text.Status == Failed || u.Text.Status == Rejected && !over):
		u.Text.Status = Unread // who hears the sound may understand it
	}
	return reads
}

// read has the words of an utterance recognised.
func read(x *step, u *Utterance) {
	u.Text, u.Read = Text{}, true
	x.do(Read{u.ID})
}

// readRest has the words read of what was said before, where there are only words of the
// rest. It reports whether they are awaited.
func readRest(x *step) (reads bool) {
	missing := func(u *Utterance) bool { return u.Role == Awaited && u.Text.Status == Unread }
	if all := x.all(Awaited); !slices.ContainsFunc(all, missing) || !slices.ContainsFunc(all, func(u *Utterance) bool { return !u.Sound && !u.Echo }) {
		return false
	}
	x.release(ErrReplaced, func(u *Utterance) bool { return missing(u) && (u.Read || !x.Reads) })
	for _, u := range x.all(Awaited) {
		if missing(u) {
			read(x, u)
			reads = true
		}
	}
	return reads
}
