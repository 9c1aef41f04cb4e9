package turn

import (
	"cmp"
	"slices"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// The times of a conversation that are no settings.
const (
	afterDetect  = time.Second            // a listen start so soon after a wake word belongs to it
	greetAfter   = 300 * time.Millisecond // from a wake word to its greeting, without a listen start
	keepAlive    = 60 * time.Second       // between the messages that keep a channel open
	hintInterval = time.Minute            // between two spoken hints about recognition
	maxFailures  = 3                      // of the listener in a row; then the conversation ends
	announceIn   = time.Second            // of quiet, before an announcement
	resumeIn     = 3 * time.Second        // of quiet, before something goes on that was interrupted
)

// Rules decide who may speak in conversations. They do not change. Endpoint
// times, limits and words come from the settings.
type Rules struct {
	Commit           time.Duration // the silence that ends an utterance
	Trigger          time.Duration // the silence at which its text is asked for
	MinSpeech        time.Duration // the voice after which SpeechStarted is reported
	Speculations     int           // how often the answer to one utterance may begin before its end
	IdleClose        time.Duration // neither speech nor turn for so long: hang up
	SlowAfter        time.Duration // until a text, a model or a voice is said to be slow; 0 or less: never
	RecognizeTimeout time.Duration // until it is given up
	StopWords        []string      // what ends music, and a reply in realtime mode
	NoChinese        bool          // no recogniser knows Chinese
	Reads            bool          // there is a recogniser for utterances whose sound is answered
	NoEchoGuard      bool          // words of the reply itself interrupt it
	DeviceLang       text.Lang     // of the device, where the last turn tells none; "": zh
	Texts            *prompts.Set  // with the words of languages beside Chinese and English; nil: there are none
}

// Next returns the state after an event, and what has to be done. It is pure: s
// is not changed, and the same arguments give the same results.
func (r *Rules) Next(s State, seen Seen, e Event) (State, []Effect) {
	s.Said = slices.Clone(s.Said)
	before := s.Reply
	x := &step{Rules: r, State: s, seen: seen}
	event(x, e)
	part(x, &before)
	return x.State, x.effects
}

// step is one call of Next: the state that changes, and the effects so far.
type step struct {
	*Rules
	State
	seen    Seen
	effects []Effect
}

func (x *step) do(e ...Effect) { x.effects = append(x.effects, e...) }

// event is the table's first column.
func event(x *step, e Event) {
	switch e := e.(type) {
	case ListenStart, ListenStop, WakeWord, Typed, Abort:
		switch {
		case x.Farewell.Step == Saying:
			saying(x, e)
		case !x.Due.Farewell.IsZero():
			turnedAway(x, e)
		case x.Farewell.Step < Saying:
			device(x, e)
		}
	case SpeechStarted:
		speechStarted(x, e)
	case SpeechLong:
		speechLong(x, e)
	case Interim:
		interim(x, e)
	case SpeechPaused:
		limitPause(x, e.ID, decideWithin-x.Trigger)
	case Draft:
		draft(x, e)
	case Identified:
		identified(x, e)
	case SpeechResumed:
		speechResumed(x, e)
	case SpeechEnded:
		speechEnded(x, e)
	case Transcript:
		transcript(x, e)
	case ListenFailed:
		listenFailed(x, e.Err)
	case Ready:
		ready(x, e.Turn)
	case ToolWanted:
		toolWanted(x, e)
	case Firmed:
		if e.Turn == x.Reply.Turn {
			x.Reply.Firm = true
		}
	case Waiting:
		waiting(x, e)
	case Waited:
		waited(x, e)
	case Advanced:
		advanced(x, e)
	case Finished:
		finished(x, e)
	case Close:
		x.Farewell.Step, x.Due, x.Reply.Until = Gone, Due{}, time.Time{}
		x.Reply.Waits = Waits{}
	default:
		others(x, e)
	}
}

// others handles the events that come neither from the device nor from the turn.
func others(x *step, e Event) {
	switch e := e.(type) {
	case Queued:
		x.awaitQuiet()
	case Interrupt:
		if x.Farewell.Step == Staying {
			x.forget()
		}
		x.begin(Request{Announcement: e.Announcement, Lang: e.Lang, Times: timeline.Times{EndOfSpeech: x.seen.Now}})
	case Invite:
		if x.Farewell.Step == Staying && x.Mic.Mode != wire.Manual && x.Phase() == Idle && !x.Busy() {
			x.begin(Request{Lang: x.lang(), Times: timeline.Times{EndOfSpeech: x.seen.Now}})
		}
	case StopReply:
		if phase := x.Phase(); x.Busy() && !x.Speculates() {
			stopReply(x, false)
			x.rest(phase != Idle)
			x.listenAgain()
		}
	case StopMusic:
		stopMusic(x, e.Cause)
	case Withdraw:
		if x.Asked == e.ID {
			x.Asked = 0
		}
	case Drain:
		if x.Farewell.Step == Staying {
			x.Farewell = Farewell{Step: Parting, Phrase: prompts.ShuttingDown, Cause: e.Cause}
		}
	case Leave:
		x.hangUp(e.Cause)
	case Tick:
		tick(x)
	}
}

// tick acts on the limits that are over. A limit that one of these actions sets is
// left to the next tick.
func tick(x *step) {
	var due []func(*step)
	over := func(at *time.Time, act func(*step)) {
		if !at.IsZero() && !at.After(x.seen.Now) {
			*at = time.Time{}
			due = append(due, act)
		}
	}
	over(&x.Due.Greeting, greet)
	over(&x.Due.Text, textLate)
	over(&x.Reply.Until, resume)
	for what := range x.Reply.Waits {
		if !x.noticeDue(WaitFor(what)).IsZero() {
			over(&x.Reply.Waits[what].Due, func(x *step) { tooLong(x, WaitFor(what)) })
		}
	}
	over(&x.Due.Announce, announce)
	over(&x.Due.Idle, idle)
	over(&x.Due.Farewell, farewellDue)
	for _, act := range due {
		act(x)
	}
}

// touch notes that something happens, which puts off the idle close and the
// next announcement.
func (x *step) touch() {
	x.Active = x.seen.Now
	x.Due.Idle = x.Active.Add(x.IdleClose)
	if x.seen.Expecting {
		x.Due.Idle = x.Active.Add(min(x.IdleClose, keepAlive))
	}
	x.awaitQuiet()
}

// idle hangs up when nothing happens, unless something is expected: then a
// message keeps the channel open.
func idle(x *step) {
	switch {
	case x.Farewell.Step > Parting:
	case x.Reply.Stage != None:
		x.touch()
	case x.seen.Expecting:
		x.do(Send{wire.MessageKeepAlive})
		x.awaitQuiet()
		x.Due.Idle = x.seen.Now.Add(min(x.IdleClose, keepAlive))
	case x.seen.Now.Sub(x.Active) < x.IdleClose: // what was expected has come to nothing
		x.Due.Idle = x.Active.Add(x.IdleClose)
	default:
		x.hangUp(ErrIdle)
	}
}

// hangUp ends the conversation in good order.
func (x *step) hangUp(cause error) {
	if x.Farewell.Step >= Leaving {
		return
	}
	if x.Farewell.Cause != nil {
		cause = x.Farewell.Cause
	}
	x.Farewell.Step = Leaving
	x.Greeting, x.Due.Greeting = "", time.Time{}
	x.forget()
	x.releaseAll(Overdue, ErrReplaced)
	x.Due = Due{}
	x.Mic.Deaf = true
	x.do(CloseListener{cause}, HangUp{cause})
}

// lang returns what is spoken when no text says it.
func (x *step) lang() text.Lang {
	return cmp.Or(x.Learned.Lang, x.deviceLang())
}

// deviceLang returns the language of the device, whatever was said last.
func (x *step) deviceLang() text.Lang { return cmp.Or(x.DeviceLang, text.Chinese) }

// hearing returns the language that the recogniser is told: that of the last turn. A device whose
// language is neither Chinese nor English keeps its own: one OK must not make the next sentence English.
func (x *step) hearing() text.Lang {
	if own := x.deviceLang(); !own.IsOwn() {
		return own
	}
	return x.lang()
}

// langOf returns the language of a turn that answers words, which a recogniser heard in that
// language; "": it does not say.
func (x *step) langOf(words string, heard text.Lang) text.Lang {
	if text.Of(words) == "" {
		return x.lang()
	}
	return text.Resolve(words, heard, x.deviceLang())
}

// tongue judges what is said in a language.
func (x *step) tongue(lang text.Lang) intent.Tongue {
	return intent.Tongue{Lang: lang, Words: x.Texts.Words(lang)}
}

// listen opens the listener afresh in the present mode.
func (x *step) listen() {
	x.Mic.Epoch++
	x.Mic.Deaf = false
	x.dropLive()
	x.discard(ErrReplaced)
	x.do(Listen{x.Mic.Epoch, x.Mic.Mode, x.Learned.Pause.Delay(x.Commit, intent.Undecided), x.hearing()})
}

// listenAgain goes back to listening after a reply, without waiting for a
// listen start: not every client sends one.
func (x *step) listenAgain() {
	if x.Mic.Open && x.Farewell.Step == Staying && (x.Mic.Mode == wire.Auto || (x.Mic.Mode == wire.Realtime && x.Mic.Deaf)) {
		x.listen()
	}
}

// rest puts the listening side where it is with nothing to do, if a reply or an
// utterance has just ended there.
func (x *step) rest(ended bool) {
	if !ended {
		return
	}
	x.Ear = Resting
	if x.Mic.Open && x.Mic.Mode != wire.Manual {
		x.Ear = Hearing
	}
}

// find returns the utterance with an ID, or nil if it was let go.
func (x *step) find(id uint64) *Utterance {
	for i := range x.Said {
		if x.Said[i].ID == id {
			return &x.Said[i]
		}
	}
	return nil
}

// all returns the utterances of a role, oldest first.
func (x *step) all(role Role) (out []*Utterance) {
	for i := range x.Said {
		if x.Said[i].Role == role {
			out = append(out, &x.Said[i])
		}
	}
	return out
}

// last returns the newest utterance of a role, or nil.
func (x *step) last(role Role) *Utterance {
	all := x.all(role)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// release ends all work for utterances and lets them go.
func (x *step) release(cause error, which func(*Utterance) bool) {
	x.Said = slices.DeleteFunc(x.Said, func(u Utterance) bool {
		gone := which(&u)
		if gone {
			x.do(Release{u.ID, cause})
		}
		return gone
	})
}

// releaseAll ends all work for the utterances of a role and lets them go.
func (x *step) releaseAll(role Role, cause error) {
	x.release(cause, func(u *Utterance) bool { return u.Role == role })
}

// dropLive lets go of an utterance that the listener has dropped by itself.
func (x *step) dropLive() {
	x.Said = slices.DeleteFunc(x.Said, func(u Utterance) bool { return u.Role == Live })
}

// forget lets go of all utterances that are not answered yet, except overdue ones:
// the user was told that their answer comes.
func (x *step) forget() {
	x.releaseAll(Awaited, ErrReplaced)
	x.releaseAll(Overlap, ErrReplaced)
	x.Speculate = Speculation{}
	if x.last(Overdue) == nil {
		x.Due.Text = time.Time{}
	}
	x.discard(ErrReplaced)
	x.dropNext()
}
