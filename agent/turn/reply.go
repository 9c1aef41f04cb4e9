package turn

import (
	"time"

	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// consentTime is how long a yes counts after the question.
const consentTime = time.Minute

// begin starts a turn, as soon as the one before it has been joined. Once the end
// is near nothing is announced any more, and after the farewell there is no turn.
func (x *step) begin(r Request) {
	if x.Farewell.Step >= Leaving || !x.Due.Farewell.IsZero() || r.Announcement != 0 && x.Farewell.Step != Staying {
		if r.Announcement != 0 {
			x.do(Drop{r.Announcement})
		}
		return
	}
	x.touch()
	if r.Announcement != 0 && !r.Music {
		x.Consent.Overtaken = x.Consent.ID != 0
	}
	if x.Reply.Stage != None {
		if x.Reply.runs() {
			x.cut(ErrReplaced)
		}
		x.dropNext()
		x.Pending = &r
		return
	}
	x.Turns++
	stage := Committed
	if r.Speculative {
		stage = Speculative
	}
	x.Reply = Reply{Turn: x.Turns, Stage: stage, Request: r, Over: x.Reply.Over}
	x.do(Begin{x.Turns, r})
	if stage == Committed && certain(x, r) {
		ready(x, x.Turns)
	}
}

// certain reports whether nothing but the user's hand can undo the answer to a request: it was typed, or the button was let
// go. Then tts start need not wait for its first words.
func certain(x *step, r Request) bool {
	return !r.Sound && (r.Typed || x.Mic.Mode == wire.Manual && len(r.Heard) > 0)
}

// dropNext gives up the request that waits to begin.
func (x *step) dropNext() {
	if x.Pending == nil {
		return
	}
	if x.Pending.Announcement != 0 {
		x.do(Drop{x.Pending.Announcement})
	}
	x.Pending = nil
}

// cut ends the reply that runs, with a cause, and reports whether tts stop was
// sent: the device hears of it only if it has heard of the reply.
func (x *step) cut(cause error) (stopped bool) {
	x.dropNext()
	if !x.Reply.runs() {
		return false
	}
	stopped = x.Reply.started()
	ends := Ending
	if x.Reply.Stage == Speculative {
		ends = Discarded
	}
	x.Reply.Stage, x.Reply.Until, x.Reply.Waits = ends, time.Time{}, Waits{}
	x.do(Cut{x.Reply.Turn, cause})
	return stopped
}

// replyEnds runs f, which ends the reply, and puts the listening side at rest if
// there was one.
func (x *step) replyEnds(f func()) {
	phase := x.Phase()
	f()
	x.rest(phase == Thinking || phase == Talking)
}

// ready handles a turn that has something to be heard.
func ready(x *step, turn uint64) {
	if turn != x.Reply.Turn || x.Reply.Ready || !x.Reply.runs() || x.Farewell.Step >= Leaving {
		return
	}
	x.Reply.Ready = true
	if x.Reply.Stage == Committed {
		start(x)
	}
}

// start sends tts start: from here on the turn cannot be undone.
func start(x *step) {
	x.do(Start{x.Reply.Turn})
	x.answered()
	x.Reply.Stage = Speaking
	listenOverReply(x)
}

// commit lets the reply be seen and act.
func commit(x *step) {
	speculative := x.Reply.Stage == Speculative
	x.Reply.Stage, x.Reply.Until = Committed, time.Time{}
	x.do(Commit{x.Reply.Turn})
	for what, w := range x.Reply.Waits {
		if speculative && !w.Since.IsZero() {
			x.awaits(WaitFor(what)) // until here nobody was waiting
		}
	}
	if x.Reply.Ready || certain(x, x.Reply.Request) {
		x.Reply.Ready = true
		start(x)
	}
	if x.Reply.Asks {
		allowTool(x)
	}
}

// toolWanted handles a turn that wants to run a tool. What may still be undone
// waits, and after the hang-up no tool runs.
func toolWanted(x *step, e ToolWanted) {
	if e.Turn != x.Reply.Turn || x.Farewell.Step >= Leaving {
		return
	}
	switch x.Reply.Stage {
	case Speculative, Held:
		x.Reply.Asks, x.Reply.Ready = true, x.Reply.Ready || e.Start
	case Committed, Speaking, Paused:
		if e.Start {
			ready(x, e.Turn)
		}
		allowTool(x)
	case None, Ending, Discarded: // its context has ended
	}
}

func allowTool(x *step) {
	x.Reply.Acted, x.Reply.Asks = true, false
	x.do(AllowTool{x.Reply.Turn})
}

// answered lets go of what was said: the answer cannot be undone any more.
func (x *step) answered() {
	x.releaseAll(Awaited, ErrDone)
	x.Speculate = Speculation{}
}

// finished handles a turn whose goroutines were joined, and begins the next.
func finished(x *step, e Finished) {
	if e.Turn != x.Reply.Turn || x.Reply.Stage == None {
		return
	}
	stage := x.Reply.Stage
	if stage == Speculative || stage == Discarded { // undone, or broken: whatever it was is void
		x.do(Discard{e.Turn})
		nextTurn(x)
		return
	}
	if stage != Ending {
		x.do(Stop{e.Turn})
	}
	x.touch()
	x.do(Remember{e.Turn})
	if e.Consent.ID != 0 {
		x.Consent = e.Consent
		x.Consent.Until = x.seen.Now.Add(consentTime)
	}
	if e.Ask != 0 {
		x.Asked = e.Ask
	}
	if e.Words != "" {
		x.Learned.Lang = x.langOf(e.Words, "")
	}
	if e.HangUp || stage != Ending && x.Farewell.Step == Parting { // what was heard to its end needs no farewell
		x.hangUp(ErrGoodbye)
	}
	if stage != Ending {
		replyOver(x, e.Played)
		x.listenAgain()
	}
	nextTurn(x)
}

// nextTurn lets go of the turn that was joined, and begins the one that waits
// for that.
func nextTurn(x *step) {
	x.Reply = Reply{}
	next := x.Pending
	x.Pending = nil
	if next == nil {
		return
	}
	r := *next
	switch { // what it answers was only known now
	case r.Words == "" || r.Speculative:
	case x.Asked != 0:
		r.Told = x.tell(r)
	case x.Consent.ID != 0:
		r = consented(x, r)
	}
	x.begin(r)
}

// tell gives the user's words to whoever has asked for them, and reports whether
// anybody has.
func (x *step) tell(r Request) bool {
	if x.Asked == 0 {
		return false
	}
	x.do(Answer{x.Asked, r.Words, x.unsaid(r), r.Heard, r.Speaker})
	x.Asked = 0
	return true
}

// unsaid reports whether words may be another's than those of the person who speaks
// with the device: they were typed, which any program can do.
func (x *step) unsaid(r Request) bool { return r.Typed && x.Learned.Spoke }

// consented closes the question whether a call is allowed, if one is open, and
// takes words as the answer to it. What is no clear answer is asked again, once; then
// it is a no. A request of its own is answered, and the call is not made.
func consented(x *step, r Request) Request {
	asked := x.Consent
	x.Consent = Consent{}
	if asked.ID == 0 || x.seen.Now.After(asked.Until) {
		return r
	}
	r.Consent = asked
	own := x.tongue(r.Lang)
	answer := own.YesNo(r.Words, asked.Action)
	switch {
	case answer == intent.No:
		r.Answer = prompts.ConsentNo
	case answer == intent.Yes && !x.unsaid(r) && !asked.Overtaken && asked.mayAllow(r.Speaker):
		r.Allow = true
	case answer == intent.Yes && len(asked.By) > 0 && !asked.Overtaken:
		r.Answer = prompts.ConsentOthers
		if !asked.Again && !r.Speaker.told() {
			r.Answer = prompts.ConsentVoice // a yes in a whole sentence tells more of the voice
		}
	case answer == intent.Unclear && own.Complete(r.Words) == intent.Unfinished:
		x.Consent = asked // the rest of the answer may come; what is said until then overtakes the question
		x.Consent.Overtaken = true
	case answer == intent.Unclear && !own.Answering(r.Words):
	case asked.Again:
		r.Answer = prompts.ConsentNo
	default:
		r.Answer = prompts.ConsentAsk
	}
	return r
}

// undo takes back what a request that is undone has changed: the learned
// language, and the question that it answered.
func (x *step) undo(r Request) {
	if r.Words != "" {
		x.Learned.Lang = r.Before
	}
	if r.Consent.ID != 0 {
		x.Consent = r.Consent
	}
}

// announce begins a turn without an utterance, if nobody speaks or is about to.
// Otherwise the end of what goes on brings the next occasion.
func announce(x *step) {
	if x.PlaysMusic() && !x.Voiced() && x.seen.Queue.Len > 0 && !x.seen.Queue.Music {
		stopMusic(x, ErrPaused) // what is to be told goes before music; its end brings the next occasion
	}
	phase := x.Phase()
	quiet := phase == Idle || (phase == Listening && x.Mic.Mode != wire.Manual && !x.Voiced())
	late := overdueReady(x)
	if x.seen.Queue.Len == 0 && !late || x.Farewell.Step != Staying || x.Greeting != "" || x.Pending != nil || x.Reply.Stage != None || !quiet {
		return
	}
	x.forget()
	if !late {
		q := x.seen.Queue
		x.begin(Request{Announcement: q.Head, Music: q.Music, Lang: q.Lang, Times: timeline.Times{EndOfSpeech: x.seen.Now}})
		return
	}
	for _, u := range x.all(Overdue) {
		u.Role = Awaited
	}
	x.Due.Text = time.Time{}
	r := understood(x)
	r.Times.Silent = x.seen.Now // it was told meanwhile
	x.begin(r)
}

// stopMusic ends the stretch of music that plays, if any does.
func stopMusic(x *step, cause error) {
	if !x.PlaysMusic() {
		return
	}
	x.replyEnds(func() { x.cut(cause) })
	x.listenAgain()
}

// awaitQuiet sets the limit after which something is announced.
func (x *step) awaitQuiet() {
	late := overdueReady(x)
	switch {
	case x.Farewell.Step != Staying || x.seen.Queue.Len == 0 && !late:
		x.Due.Announce = time.Time{}
	case !late && x.seen.Queue.Resumes:
		x.Due.Announce = x.Active.Add(resumeIn)
	default:
		x.Due.Announce = x.Active.Add(announceIn)
	}
}
