package turn

import (
	"time"

	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// device handles the events of the device.
func device(x *step, e Event) {
	x.touch()
	switch e := e.(type) {
	case ListenStart:
		listenStart(x, e.Mode)
	case ListenStop:
		x.Mic.Open = false
		x.do(Microphone{false}, EndUtterance{})
	case WakeWord:
		detected(x)
		x.Greeting, x.Due.Greeting = e.Word, x.seen.Now.Add(greetAfter)
	case Typed:
		detected(x)
		x.Learned.Empty = 0
		x.releaseAll(Overdue, ErrReplaced)
		x.begin(answer(x, Request{Words: e.Words, Typed: true, Times: timeline.Times{EndOfSpeech: x.seen.Now, End: timeline.EndTyped, Endpoint: x.seen.Now, Transcript: x.seen.Now}}))
	case Abort:
		abort(x, e.Wake)
	}
}

// listenStart opens the microphone. A reply that is going on is cut, unless it
// answers the wake word that came right before.
func listenStart(x *step, mode wire.Mode) {
	x.Mic.Mode, x.Mic.Open = mode, true
	x.do(Microphone{mode == wire.Realtime})
	switch {
	case x.Greeting != "":
		x.listen()
		greet(x)
		return
	case x.Busy() && x.seen.Now.Sub(x.Mic.Detected) < afterDetect:
		x.listen()
		if x.Phase() == Talking {
			listenOverReply(x)
		}
		return
	case x.Busy() && x.PlaysMusic():
		x.cut(ErrPaused)
	case x.Busy():
		x.cut(ErrAborted)
	}
	x.forget()
	x.listen()
	x.Ear = Hearing
}

// detected ends what goes on for a wake word or a text.
func detected(x *step) {
	x.Mic.Detected = x.seen.Now
	x.Greeting, x.Due.Greeting = "", time.Time{}
	if x.Busy() {
		x.replyEnds(func() { x.cut(ErrReplaced) })
	}
	x.forget()
	if x.Mic.Open {
		x.listen() // the sound of the wake word is no utterance
	}
}

// greet answers a wake word.
func greet(x *step) {
	if x.Greeting == "" {
		return
	}
	word := x.Greeting
	x.Greeting, x.Due.Greeting = "", time.Time{}
	x.forget()
	x.begin(Request{Shown: word, Phrase: prompts.Greeting, Lang: x.lang(), Times: timeline.Times{EndOfSpeech: x.seen.Now}})
}

// abort stops the reply at once. The device gets exactly one tts stop, also when
// nothing is going on (docs/protocol.md 3.2.4).
func abort(x *step, wake bool) {
	phase := x.Phase()
	if !stopReply(x, wake) {
		x.do(Send{wire.MessageTTSStop})
	}
	x.rest(phase != Idle)
	if x.Mic.Open && x.Mic.Mode != wire.Manual {
		x.listen() // what was said before the abort is not answered after it
	}
}

// stopReply ends whatever is going on, and reports whether tts stop was sent. A
// wake word pauses music, everything else ends it.
func stopReply(x *step, wake bool) (stopped bool) {
	x.touch()
	x.Greeting, x.Due.Greeting = "", time.Time{}
	x.releaseAll(Overdue, ErrReplaced)
	switch {
	case x.Busy() && x.PlaysMusic() && wake:
		stopped = x.cut(ErrPaused)
	case x.Busy():
		stopped = x.cut(ErrAborted)
	case x.seen.Song && !wake:
		x.do(EndMusic{})
	}
	x.forget()
	return stopped
}

// listenFailed handles the end of a listener that failed.
func listenFailed(x *step, err error) {
	x.Mic.Deaf = true
	x.dropLive()
	x.do(CloseListener{err})
	x.forget()
	x.Mic.Failures++
	if !x.Busy() {
		x.begin(Request{Phrase: prompts.FailInternal, Err: err, HangUp: x.Mic.Failures >= maxFailures, Lang: x.lang()})
	}
}

// listenOverReply has the listener do what is wanted while a reply is spoken.
func listenOverReply(x *step) {
	u := x.find(x.Reply.Over)
	switch {
	case x.Mic.Mode == wire.Realtime:
		x.do(Watch{true})
	case u != nil && u.Role == Live && u.Over != OverNothing && u.Epoch == x.Mic.Epoch:
		x.do(EndUtterance{}) // what the user has said so far is not lost
	default:
		x.dropLive()
		x.do(Mute{})
	}
}
