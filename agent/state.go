package agent

import "xiaozhi/internal/wire"

// State is where a conversation stands (style.md, "A turn").
type State int

// The states of a conversation.
const (
	Idle        State = iota // nothing going on, microphone closed
	Listening                // microphone open, waiting for an utterance to end
	Recognizing              // the utterance is over, its text is awaited
	Thinking                 // the model works; nothing irrevocable was sent
	Speaking                 // tts start was sent
	Closed                   // for good
)

// String is the state's stable name in logs.
func (s State) String() string {
	switch s {
	case Idle:
		return "idle"
	case Listening:
		return "listening"
	case Recognizing:
		return "recognizing"
	case Thinking:
		return "thinking"
	case Speaking:
		return "speaking"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// signal is what moves a conversation from one state to the next.
type signal int

const (
	sigListen    signal = iota // listen start
	sigText                    // typed text
	sigEndpoint                // the utterance is over: found by us, or listen stop
	sigResume                  // the user goes on speaking before tts start: the turn is undone
	sigFinal                   // the text of the utterance is there, the turn begins
	sigStart                   // tts start was sent
	sigPlayedOut               // the reply ended, tts stop was sent
	sigServer                  // a turn without an utterance begins
	sigBargeIn                 // the user's voice cuts a reply that cannot be undone (realtime)
	sigAbort                   // the device says stop
	sigHangUp                  // the connection ends
)

var signalNames = [...]string{
	"listen", "text", "endpoint", "resume", "final", "start",
	"played_out", "server", "barge_in", "abort", "hang_up",
}

// String is the signal's stable name in logs.
func (s signal) String() string { return signalNames[s] }

// next is the state that follows s on sig in listen mode m (rest is where a
// conversation goes that has nothing to do; open tells whether the device opened
// its microphone). It is pure. The second value is
// false when the signal has no meaning in s; the state then stays as it is.
func next(s State, sig signal, m wire.Mode, open bool) (State, bool) {
	rest := Idle
	if open && m != wire.Manual {
		rest = Listening
	}
	if s == Closed {
		return Closed, false
	}
	switch sig {
	case sigHangUp:
		return Closed, true
	case sigListen:
		return Listening, true
	case sigText, sigServer:
		return Thinking, true
	case sigEndpoint:
		return orStay(s, Recognizing, s == Listening)
	case sigFinal:
		return orStay(s, Thinking, s == Recognizing || s == Listening)
	case sigResume:
		return orStay(s, Listening, s == Recognizing || s == Thinking)
	case sigStart:
		return orStay(s, Speaking, s == Thinking)
	case sigPlayedOut:
		return orStay(s, rest, s == Thinking || s == Speaking)
	case sigBargeIn:
		return orStay(s, Listening, s == Thinking || s == Speaking)
	case sigAbort:
		return orStay(s, rest, s != Idle)
	}
	return s, false
}

func orStay(s, to State, ok bool) (State, bool) {
	if ok {
		return to, true
	}
	return s, false
}
