package turn

import (
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
)

// The times of a farewell.
const (
	turnAwayIn = 5 * time.Second  // for a device that is turned away to listen; then it is let go without a word
	buttonTime = 10 * time.Second // for a button that is held to be let go
)

// Farewell says how far the end of the conversation is.
type Farewell struct {
	Step   Step
	Phrase string // tells a listener why, as a sound that is part of the program
	Words  string // said in its place, if there is a voice; "": nothing else is said
	Cause  error  // of the hang-up; nil: whoever hangs up says why
}

// Step is a step of the end.
type Step int

// The steps of the end.
const (
	Staying Step = iota
	Parting      // nothing new is begun; the phrase is said, or nothing, as soon as that can be
	Saying       // the phrase is said
	Leaving      // hung up: the device is not listened to any more
	Gone         // the connection has ended
)

// TurnedAway is the state of a conversation that may not be held. It begins with its
// farewell, which waits for the device to listen: before that a device refuses a
// reply.
func TurnedAway(now time.Time, f Farewell) State {
	f.Step = Parting
	return State{Mic: Mic{Mode: wire.Auto, Deaf: true}, Farewell: f, Due: Due{Farewell: now.Add(turnAwayIn)}}
}

// turnedAway handles the events of a device that is to be told that it may not talk. A wake word is followed by a listen start, or by none. A button that
// is held has to be let go: with that a device is idle, whatever it is being told.
func turnedAway(x *step, e Event) {
	switch e := e.(type) {
	case ListenStart:
		x.Mic.Mode, x.Mic.Open = e.Mode, true
		x.Due.Farewell = x.seen.Now.Add(buttonTime)
		if e.Mode != wire.Manual {
			sayFarewell(x)
		}
	case ListenStop:
		x.Mic.Open = false
		sayFarewell(x)
	case WakeWord, Typed:
		x.Mic.Detected = x.seen.Now
		x.Due.Farewell = x.seen.Now.Add(greetAfter)
	case Abort:
		x.do(Send{wire.MessageTTSStop})
	}
}

// farewellDue says the farewell to a device that has done something but did not
// listen in time, and lets any other go.
func farewellDue(x *step) {
	if x.Farewell.Step == Parting && (x.Mic.Open || !x.Mic.Detected.IsZero()) { // else it was idle for too long
		sayFarewell(x)
		return
	}
	x.hangUp(x.Farewell.Cause)
}

// part goes on with a farewell. That of a server that stops begins once the device
// waits for no reply, or has just cut it for something new: a listener is told, any
// other device is hung up on.
func part(x *step, before *Reply) {
	cut := before.started() && x.Reply.Stage == Ending
	switch {
	case x.Farewell.Step == Saying && x.Reply.Stage == None:
		x.hangUp(x.Farewell.Cause)
	case x.Farewell.Step != Parting, !x.Due.Farewell.IsZero(), !cut && awaitsReply(x):
	case x.Mic.Open:
		sayFarewell(x)
	default:
		x.hangUp(x.Farewell.Cause)
	}
}

// awaitsReply reports whether the device waits for a reply: it runs or is about to,
// or the device has said all and closed its microphone.
func awaitsReply(x *step) bool {
	return x.Busy() && !x.Speculates() || x.Greeting != "" || x.Ear != Resting && !x.Mic.Open
}

// sayFarewell says the farewell, instead of all else.
func sayFarewell(x *step) {
	f := x.Farewell
	x.Greeting, x.Due = "", Due{}
	x.forget()
	x.releaseAll(Overdue, ErrReplaced)
	x.Mic.Deaf = true
	x.Mic.Epoch++ // what the listener has reported last is not heard
	x.do(CloseListener{f.Cause})
	x.Farewell.Step = Saying
	times := timeline.Times{EndOfSpeech: x.seen.Now}
	x.begin(Request{Phrase: f.Phrase, Wording: f.Words, Recorded: f.Words == "", Lang: x.deviceLang(), Cause: f.Cause, Times: times})
}

// saying handles the events of the device during the farewell: what would cut a
// reply ends the conversation. The listen start that belongs to a wake word does not.
func saying(x *step, e Event) {
	switch e := e.(type) {
	case ListenStart:
		x.Mic.Mode, x.Mic.Open = e.Mode, true
		if x.seen.Now.Sub(x.Active) <= afterDetect {
			return
		}
	case ListenStop:
		x.Mic.Open = false
	}
	_, abort := e.(Abort)
	if stopped := x.cut(ErrAborted); abort && !stopped {
		x.do(Send{wire.MessageTTSStop})
	}
	x.hangUp(x.Farewell.Cause)
}
