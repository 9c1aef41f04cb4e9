package turn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// speechStarted handles the beginning of speech. Between the commit and tts start
// it undoes the turn: the user has not finished.
func speechStarted(x *step, e SpeechStarted) {
	x.touch()
	if e.Epoch != x.Mic.Epoch {
		return
	}
	u := Utterance{ID: e.ID, Epoch: e.Epoch, Attempt: 1}
	phase := x.Phase()
	if phase == Talking {
		x.Reply.Over, u.Over = u.ID, OverReply
	}
	x.Said = append(x.Said, u)
	if phase != Recognizing && phase != Thinking {
		return
	}
	before := x.last(Awaited)
	if before != nil {
		x.Learned.Pause.CutOff(x.seen.Now.Sub(before.Spoken) - x.MinSpeech)
	}
	if x.Busy() {
		switch {
		case before == nil && (x.Pending != nil || x.Reply.Stage == None || x.Reply.Request.Announcement == 0):
			return // nobody said what is being answered
		case x.Pending != nil:
			x.undo(*x.Pending)
		case x.Reply.Acted:
			hold(x, u.ID)
			return
		default:
			r := x.Reply.Request
			x.cut(ErrResumed)
			x.undo(r)
		}
	}
	x.dropNext()
	x.Ear = Hearing
}

// speechResumed handles speech that goes on after a pause.
func speechResumed(x *step, e SpeechResumed) {
	x.touch()
	u := x.find(e.ID)
	if u == nil {
		return
	}
	if e.Attempt != u.Attempt {
		u.Attempt, u.Text = e.Attempt, Text{}
	}
	if u.Epoch != x.Mic.Epoch {
		return
	}
	limitPause(x, u.ID, maxPause)
	if x.Phase() == Listening {
		x.Learned.Pause.Paused(e.Gap) // over a reply it may be anything, also the reply itself
		x.discard(ErrResumed)
	}
}

// speechEnded waits for the text of what was said, if it is to be answered.
func speechEnded(x *step, e SpeechEnded) {
	x.touch()
	x.Mic.Failures = 0
	u := x.find(e.ID)
	if u == nil {
		x.Said = append(x.Said, Utterance{ID: e.ID, Epoch: e.Epoch, Attempt: e.Attempt})
		u = x.find(e.ID)
	}
	phase := x.Phase()
	over := x.isOver(u)
	u.Role, u.Spoken, u.Ended = Awaited, e.Spoken, e.Ended
	if e.Echo && u.Over != CutReply && !u.final() { // whatever a recogniser makes of it
		u.Text, u.Echo = Text{Status: Final, At: x.seen.Now}, true
	}
	switch {
	case x.Farewell.Step > Parting:
		drop(x, e.ID, ErrReplaced)
	case u.Epoch == x.Mic.Epoch && (phase == Listening || phase == Recognizing):
		if u.Echo {
			disregard(x, u)
			return
		}
		await(x, u)
	case over:
		u.Role = Overlap
		x.Due.Text = x.seen.Now.Add(x.RecognizeTimeout)
		echo, said := u.Echo, u.Text
		letGoOverlap(x)
		if echo {
			if u = x.find(e.ID); u == nil {
				u = &Utterance{ID: e.ID, Epoch: e.Epoch, Role: Overlap, Over: OverReply, Echo: true, Text: said}
			}
			judge(x, u, said, true)
		}
	default:
		x.discard(ErrReplaced)
		drop(x, e.ID, ErrReplaced)
	}
}

// drop lets go of one utterance.
func drop(x *step, id uint64, cause error) {
	x.release(cause, func(u *Utterance) bool { return u.ID == id })
}

// await makes an utterance that is over one that will be answered.
func await(x *step, u *Utterance) {
	u.Role = Awaited
	for _, late := range x.all(Overdue) {
		late.Role = Awaited
	}
	x.Due.Text = x.seen.Now.Add(textWithin(x, u))
	if x.Phase() == Listening {
		x.Ear = Reading
	}
	answerAwaited(x)
}

// transcript handles the text of an utterance.
func transcript(x *step, e Transcript) {
	u := x.find(e.ID)
	if u == nil || u.final() || e.Attempt != u.Attempt {
		return // too late
	}
	u.Text, u.Echo = e.Text, e.Echo
	u.Text.At = x.seen.Now
	if unread(x, u) {
		return
	}
	if u.Role != Live && !u.Sound {
		x.do(Release{u.ID, ErrDone})
	}
	switch {
	case u.Role == Overdue:
		x.awaitQuiet()
	case x.isOver(u):
		judge(x, u, u.Text, true)
	case u.Role != Live:
		answerAwaited(x)
	case !u.Echo:
		speculate(x, u)
	}
}

// answerAwaited begins the answer when the text of all that was said is there.
func answerAwaited(x *step) {
	last := x.last(Awaited)
	if x.Phase() != Recognizing || last == nil {
		return
	}
	if last.final() {
		dropUnread(x, false) // the user has said it again, or something else
	}
	if slices.ContainsFunc(x.all(Awaited), func(u *Utterance) bool { return !u.final() }) || readRest(x) {
		return
	}
	if nothingMeant(x) {
		x.forget()
		x.Ear = Hearing
		x.awaitQuiet() // what waited to be announced was put off by it
		return
	}
	r := understood(x)
	x.Learned.Pause.Answered()
	if !adopt(x, r) {
		x.begin(r)
	}
}

// dropUnread lets go of what was said before and is still not understood: all
// of it, or what was said to be late or may have been a cough over a reply.
func dropUnread(x *step, all bool) {
	x.release(ErrReplaced, func(u *Utterance) bool {
		return u.Role == Awaited && !u.final() && (all || u.Late || u.Over != OverNothing)
	})
}

// understood makes a request of all that was said.
func understood(x *step) Request {
	var heard []uint64
	for _, u := range x.all(Awaited) {
		heard = append(heard, u.ID)
	}
	r := request(x, heard)
	r.Heard = heard
	return r
}

// request makes a request of what was said in these utterances.
func request(x *step, said []uint64) Request {
	last := x.last(Awaited)
	times := timeline.Times{
		EndOfSpeech: last.Spoken, End: endOf(x), Delay: last.Delay, Endpoint: last.Ended, Silent: silentFrom(x, last), Transcript: last.Text.At,
		Discarded: x.Speculate.Discarded,
	}
	var words string
	var heard text.Lang
	var failed error
	rejected, unread, sound := false, false, true
	for _, u := range x.all(Awaited) {
		sound = sound && u.Sound
		times.Attempts = append(times.Attempts, u.Text.Attempts...)
		switch u.Text.Status {
		case Failed:
			failed = errors.Join(failed, u.Text.Err)
		case Rejected:
			rejected = true
			x.do(NotUnderstood{u.Text})
		case Unread:
			unread = true
		case Final, Pending:
			words, heard = text.Join(words, u.Text.Words), cmp.Or(u.Text.Lang, heard)
			times.ASR = u.Text.Provider
		}
	}
	who := speaker(x, x.all(Awaited))
	switch {
	case unread:
		x.Learned.Empty, x.Learned.Spoke = 0, true
		return Request{Sound: true, Lang: x.lang(), Before: x.Learned.Lang, Speaker: who, Times: times}
	case text.Bare(words) != "":
		x.Learned.Empty, x.Learned.Spoke = 0, true
		r := answer(x, Request{Words: words, Heard: said, Lang: heard, Speaker: who, Times: times})
		r.Sound = sound && !r.Told && !r.Allow && r.Answer == ""
		return r
	case failed != nil:
		return Request{Phrase: prompts.FailASR, Err: failed, Lang: x.lang(), Times: times}
	case rejected && x.NoChinese && hint(x):
		x.do(NoRecognizer{})
		phrase := prompts.NoChineseASR
		if !x.deviceLang().IsOwn() {
			phrase = prompts.NoASR
		}
		return Request{Phrase: phrase, Lang: x.deviceLang(), Cause: ErrNoSpeech, Times: times}
	}
	return empty(x, times)
}

// endOf says by what an utterance is over.
func endOf(x *step) timeline.End {
	if x.Mic.Mode == wire.Manual {
		return timeline.EndStop
	}
	return timeline.EndVoice
}

// answer completes the request to answer words. Its language is the one in which they were heard.
func answer(x *step, r Request) Request {
	r.Shown, r.Lang, r.Before = r.Words, x.langOf(r.Words, r.Lang), x.Learned.Lang
	expected := x.hearing()
	x.Learned.Lang = r.Lang
	if now := x.hearing(); now != expected && x.Mic.Mode == wire.Realtime && x.Mic.Open {
		x.do(Expect{now})
	}
	if r.Told = x.tell(r); r.Told {
		return r
	}
	r = consented(x, r)
	if !r.Allow && r.Answer == "" && x.seen.Song && (text.In(r.Words, x.StopWords) || text.In(r.Words, x.Texts.Words(r.Lang).Stop)) {
		x.do(EndMusic{})
		r.Answer = prompts.OK
	}
	return r
}

// empty returns the request for an utterance without words: "pardon?" at first, a
// hint at the second in a row, then nothing but the start/stop pair.
func empty(x *step, times timeline.Times) Request {
	x.Learned.Empty++
	r := Request{Lang: x.lang(), Cause: ErrNoSpeech, Times: times}
	switch {
	case x.Learned.Empty == 1:
		r.Phrase = prompts.Pardon
	case x.Learned.Empty == 2 && hint(x):
		r.Phrase = prompts.HintNoSpeech
	}
	return r
}

// hint reports whether a hint about recognition may be spoken now.
func hint(x *step) bool {
	if !x.Learned.Hinted.IsZero() && x.seen.Now.Sub(x.Learned.Hinted) < hintInterval {
		return false
	}
	x.Learned.Hinted = x.seen.Now
	return true
}

// silentFrom returns since when the user waits for the text of an utterance. The
// wait for the end of a long pause does not count, nor the time of a reply.
func silentFrom(x *step, u *Utterance) time.Time {
	return later(u.Spoken, u.Ended.Add(-x.Commit), x.Last.At)
}

// textWithin returns how long the text of an utterance is waited for.
func textWithin(x *step, u *Utterance) time.Duration {
	if x.SlowAfter <= 0 || x.last(Overdue) != nil {
		return x.RecognizeTimeout
	}
	return min(x.slowAt(silentFrom(x, u), x.seen.Now).Sub(x.seen.Now), x.RecognizeTimeout)
}

// textLate handles a text that does not come: first the user is told so, in the
// end the recogniser is given up.
func textLate(x *step) {
	reading := x.Phase() == Recognizing
	switch {
	case reading && slices.ContainsFunc(x.all(Awaited), func(u *Utterance) bool { return u.final() && text.Bare(u.Text.Words) != "" }):
		dropUnread(x, true) // something was understood: that is answered
		answerAwaited(x)
	case reading && x.last(Overdue) == nil && x.SlowAfter > 0 && x.SlowAfter < x.RecognizeTimeout:
		for _, u := range x.all(Awaited) {
			u.Role, u.Late = Overdue, true
		}
		x.Due.Text = x.seen.Now.Add(textLeft(x))
		var spoken time.Time
		if u := x.last(Overdue); u != nil {
			spoken = u.Spoken
		}
		x.begin(Request{Phrase: prompts.SlowASR, Lang: x.lang(), Times: timeline.Times{EndOfSpeech: spoken, Silent: x.seen.Now}})
	default:
		if left := textLeft(x); left > 0 {
			x.Due.Text = x.seen.Now.Add(left) // somebody is speaking: nothing is said, and nothing given up
			return
		}
		for i := range x.Said { // the recognisers do not come to an end
			if u := &x.Said[i]; u.Role != Live && !u.final() {
				err := fmt.Errorf("%w: no transcript within %s", ErrFailed, x.RecognizeTimeout)
				u.Text = Text{Status: Failed, Err: err, At: x.seen.Now}
				x.do(Release{u.ID, err})
			}
		}
		letGoOverlap(x)
		answerAwaited(x)
		x.awaitQuiet()
	}
}

// textLeft returns how much longer missing texts may take.
func textLeft(x *step) (left time.Duration) {
	for i := range x.Said {
		if u := &x.Said[i]; (u.Role == Awaited || u.Role == Overdue) && !u.final() {
			left = max(left, x.RecognizeTimeout-x.seen.Now.Sub(u.Ended))
		}
	}
	return left
}

// overdueReady reports whether the texts of all overdue utterances are there.
func overdueReady(x *step) bool {
	late := x.all(Overdue)
	return len(late) > 0 && !slices.ContainsFunc(late, func(u *Utterance) bool { return !u.final() })
}

// muted reports whether the device closes its microphone while it plays.
func (x *step) muted() bool { return x.Mic.Mode != wire.Realtime }
