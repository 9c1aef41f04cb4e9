package turn

import (
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/wire"
)

// Voice over a reply, where the microphone stays open (docs/behaviours.md
// 29-31), only pauses the reply, and not where the microphone is known to hear
// the reply itself. The words decide: a request or a stop-word cuts the reply,
// anything else lets it go on where it stopped.
const (
	decideWithin = 900 * time.Millisecond // from the last voice to the words; then the reply goes on
	maxPause     = 3 * time.Second        // of a reply for voice without words
	maxPauses    = 3                      // of a reply for nothing
	quietReply   = 3 * time.Second        // of a reply without echo; then the microphone is trusted again
	lateEcho     = 6 * time.Second        // after a reply its echo, and the recognition of that, may still come
)

// isOver reports whether an utterance is said over a reply that is spoken, or
// that is thought about and cannot be undone any more.
func (x *step) isOver(u *Utterance) bool {
	phase := x.Phase()
	return u.Over != OverNothing && u.Epoch == x.Mic.Epoch && x.Reply.Stage != None && x.Pending == nil &&
		(phase == Talking || phase == Thinking)
}

// speechLong handles voice that is long enough to interrupt. It pauses a reply
// that is spoken; the words decide, as they do for a reply that is not spoken yet.
func speechLong(x *step, e SpeechLong) {
	u := x.find(e.ID)
	if u == nil {
		return
	}
	u.Long = true
	if u.Epoch != x.Mic.Epoch || x.muted() || !x.Busy() {
		return
	}
	switch x.Phase() {
	case Thinking:
		if x.Reply.Stage == None || x.Pending != nil { // it has not begun
			x.cut(ErrBargeIn)
			x.answered()
			x.Ear = Hearing
			return
		}
		x.Reply.Over, u.Over = u.ID, OverReply
		x.do(Watch{true})
	case Talking:
		x.Reply.Over, u.Over = u.ID, OverReply
		if e.Echo {
			noteEcho(x, u.ID)
		}
		if !x.Learned.Echoes && x.Reply.Pauses < maxPauses && !x.Reply.Firm && x.Reply.Stage == Speaking {
			x.Reply.Stage, x.Reply.Until = Paused, x.seen.Now.Add(maxPause)
			x.do(Pause{x.Reply.Turn})
		}
	case Idle, Listening, Recognizing, Closed:
	}
}

// hold keeps back a reply whose tool has run while the user goes on speaking: at
// its tts start the device would close its microphone. The words decide, as they
// do over a reply. In realtime mode the microphone stays open and nothing is held.
func hold(x *step, id uint64) {
	if x.Mic.Mode != wire.Auto || (x.Reply.Stage != Committed && x.Reply.Stage != Held) {
		return
	}
	if x.Reply.Stage == Committed {
		x.do(Hold{x.Reply.Turn})
	}
	x.Reply.Stage, x.Reply.Over, x.Reply.Until = Held, id, x.seen.Now.Add(maxPause)
	if u := x.find(id); u != nil {
		u.Over = OverReply
	}
	x.do(Watch{true})
}

// limitPause sets the limit of a pause for an utterance.
func limitPause(x *step, id uint64, d time.Duration) {
	if x.Reply.waits() && x.Reply.Over == id {
		x.Reply.Until = x.seen.Now.Add(d)
	}
}

// interim handles the text so far of an utterance that goes on.
func interim(x *step, e Interim) {
	u := x.find(e.ID)
	if u == nil || !x.isOver(u) || u.final() || u.Late {
		return
	}
	u.Echo = e.Echo
	said := Text{Status: Final, Words: e.Words, Lang: e.Lang}
	if e.Rejected {
		said.Status = Rejected
	}
	judge(x, u, said, false)
}

// judge decides by its words what an utterance over a reply does to it. whole
// says that the utterance is over.
func judge(x *step, u *Utterance, said Text, whole bool) {
	id, over := u.ID, u.Role != Live
	switch kind := meant(x, u, said); kind {
	case intent.Stop, intent.Request:
		if x.muted() && x.Phase() == Talking {
			if u.Over = OverReply; whole {
				u.Over = AfterReply // the microphone is closed: it is answered after the reply
			}
		} else if !x.Reply.Firm {
			interrupt(x, id, kind == intent.Stop)
			return
		}
	case intent.Noise, intent.Backchannel:
	}
	if whole {
		resume(x)
	}
	if whole && over {
		letGoOverlap(x)
	}
}

// letGoOverlap lets go of what was said over a reply and has not cut it.
func letGoOverlap(x *step) {
	for _, u := range x.all(Overlap) {
		if u.final() && u.Over == AfterReply {
			x.do(Release{u.ID, ErrDone})
		}
	}
	x.release(ErrDone, func(u *Utterance) bool { return u.Role == Overlap && u.final() && u.Over != AfterReply })
}

// meant returns what words over a reply mean. Those of the reply itself mean nothing.
func meant(x *step, u *Utterance, said Text) intent.Kind {
	if u.Echo {
		noteEcho(x, u.ID)
		return intent.Noise
	}
	if said.Status == Rejected || said.Status == Unread && !u.Long {
		return intent.Noise
	}
	if said.Status == Unread {
		return intent.Request
	}
	own := x.tongue(x.langOf(said.Words, said.Lang))
	kind := own.Classify(said.Words, x.StopWords)
	if kind != intent.Request && kind != intent.Backchannel {
		return kind
	}
	playing := x.playing()
	if !x.NoEchoGuard && own.Echo(said.Words, playing) {
		noteEcho(x, u.ID)
		return intent.Noise
	}
	if strings.ContainsAny(playing, "?？") {
		return intent.Request // it is an answer
	}
	return kind
}

// playing returns the text that the device has played in the last seconds.
func (x *step) playing() string {
	if x.Phase() == Talking {
		return x.seen.Playing
	}
	if x.seen.Now.Sub(x.Last.At) < lateEcho {
		return x.Last.Words
	}
	return ""
}

// noteEcho notes that the microphone hears what the device plays.
func noteEcho(x *step, id uint64) {
	x.Learned.Echoes = true
	x.do(Ignored{id})
}

// disregard takes an utterance for the device's own sound. What was said before
// it is awaited as it was.
func disregard(x *step, u *Utterance) {
	noteEcho(x, u.ID)
	drop(x, u.ID, ErrDone)
	if x.last(Awaited) != nil {
		if x.Phase() == Listening {
			x.Ear = Reading
		}
		answerAwaited(x)
		return
	}
	x.awaitQuiet()
}

// interrupt ends the reply; the utterance that cuts it is answered. A stop-word does
// to music, and to what is announced, what the button does: it does not begin
// again.
func interrupt(x *step, id uint64, stop bool) {
	cause := ErrBargeIn
	if stop && x.Reply.Request.Announcement != 0 {
		cause = ErrAborted
	}
	x.find(id).Over = CutReply
	x.Reply.Over = 0
	x.do(Watch{false})
	x.cut(cause)
	x.release(ErrReplaced, func(u *Utterance) bool { return u.Role == Overlap && u.ID != id })
	x.answered()
	x.Ear = Hearing
	switch u := x.find(id); {
	case u.Role != Live:
		await(x, u)
	case u.final():
		speculate(x, u)
	}
}

// resume lets a reply go on that was paused, or held back, for nothing.
func resume(x *step) {
	switch x.Reply.Stage {
	case Paused:
		x.Reply.Stage, x.Reply.Until = Speaking, time.Time{}
		x.Reply.Pauses++
		x.do(Resume{x.Reply.Turn})
		x.touch()
	case Held:
		commit(x)
	case None, Speculative, Committed, Speaking, Ending, Discarded:
	}
}

// replyOver ends what was said over a reply that has come to its own end: what
// is not decided yet is an utterance like any other, unless it means nothing.
func replyOver(x *step, played time.Duration) {
	if !x.muted() && x.Reply.Over == 0 && played > quietReply {
		x.Learned.Echoes = false
	}
	var undecided []uint64
	for _, u := range x.all(Overlap) {
		undecided = append(undecided, u.ID)
	}
	phase := x.Phase()
	x.answered()
	x.Reply.Stage, x.Reply.Until, x.Reply.Over = Ending, time.Time{}, 0
	x.rest(phase == Thinking || phase == Talking)
	x.Last = Spoken{x.seen.Playing, x.seen.Now}
	if !x.muted() {
		x.do(Watch{false})
	}
	for _, id := range undecided {
		if phase = x.Phase(); phase == Listening || phase == Recognizing {
			x.Mic.Detected = x.seen.Now    // the listen start that follows a reply belongs to it
			if u := x.find(id); u != nil { // else it was let go with the one before
				await(x, u)
			}
		} else {
			drop(x, id, ErrReplaced)
		}
	}
}

// nothingMeant reports whether all that was said needs no answer: a sound or a
// backchannel over a reply, an echo, or the word that has stopped the reply.
func nothingMeant(x *step) bool {
	if x.Consent.ID != 0 {
		return false
	}
	for _, u := range x.all(Awaited) {
		if u.Echo && u.Over != CutReply {
			noteEcho(x, u.ID)
			continue
		}
		if u.Text.Status == Failed || u.Over == OverNothing && !u.Echo {
			return false
		}
		switch meant(x, u, u.Text) {
		case intent.Request:
			return false
		case intent.Stop:
			if u.Over != CutReply {
				return false
			}
		case intent.Noise, intent.Backchannel:
			if u.Over == CutReply && text.Bare(u.Text.Words) != "" {
				return false // the words that cut the reply are there in part
			}
		}
	}
	return true
}
