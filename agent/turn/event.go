package turn

import (
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
)

// Event is one thing that happens to a conversation: a value of one of the types below.
type Event any

// What the device does. The actor tells a wake word from typed text.
type (
	// ListenStart says that microphone frames follow.
	ListenStart struct{ Mode wire.Mode }
	// ListenStop says that no more frames follow: what was said is over.
	ListenStop struct{}
	// WakeWord says that the device was called by a word.
	WakeWord struct{ Word string }
	// Typed carries text to be answered.
	Typed struct{ Words string }
	// Abort says that the reply must stop at once. Wake: a wake word was heard.
	Abort struct{ Wake bool }
)

// What the listener reports of an utterance, in this order.
type (
	// SpeechStarted says that an utterance has begun.
	SpeechStarted struct{ ID, Epoch uint64 }
	// SpeechLong says that it is long enough to interrupt a reply.
	SpeechLong struct {
		ID   uint64
		Echo bool // it is what the device plays
	}
	// Interim is what was understood of an utterance that goes on.
	Interim struct {
		ID       uint64
		Words    string
		Lang     text.Lang // that the recogniser says it heard; "": it does not say
		Rejected bool
		Echo     bool
	}
	// SpeechPaused says that nobody has spoken for long enough to ask for the text.
	SpeechPaused struct{ ID uint64 }
	// Draft is what a recogniser that streams has understood at such a pause, or a little
	// later, without being asked: the text that it was asked for follows.
	Draft struct {
		ID       uint64
		Attempt  int
		Words    string
		Lang     text.Lang // that the recogniser says it heard; "": it does not say
		Provider string
	}
	// SpeechResumed says that the user goes on after such a pause.
	SpeechResumed struct {
		ID      uint64
		Attempt int           // from now on the text of this recogniser counts
		Gap     time.Duration // the length of the pause
	}
	// SpeechEnded says that an utterance is over. In manual mode it is the first
	// that is heard of it.
	SpeechEnded struct {
		ID, Epoch     uint64
		Attempt       int
		Spoken, Ended time.Time
		Echo          bool
	}
	// Transcript is the text of an utterance so far, or why there is none.
	Transcript struct {
		ID      uint64
		Attempt int
		Text    Text // without At
		Echo    bool
	}
	// ListenFailed says that the listener has ended by itself.
	ListenFailed struct{ Err error }
)

// What a turn reports.
type (
	// Ready says that there is something to be heard: it asks for tts start.
	Ready struct{ Turn uint64 }
	// ToolWanted asks for the leave to run a tool. Start: tts start has to go first.
	ToolWanted struct {
		Turn  uint64
		Start bool
	}
	// Firmed says that voice does not interrupt the turn any more.
	Firmed struct{ Turn uint64 }
	// Waiting says that the turn waits for something from now on.
	Waiting struct {
		Turn uint64
		For  WaitFor
	}
	// Waited says that it is there, or is not waited for any more.
	Waited struct {
		Turn uint64
		For  WaitFor
	}
	// Advanced says that a tool that is waited for has done so much of its work: 0 to 1.
	Advanced struct {
		Turn uint64
		Done float64
	}
	// Finished says that the turn's goroutines have been joined.
	Finished struct {
		Turn    uint64
		Words   string        // of the user, if only the one who answered has understood them
		Played  time.Duration // of its sound
		HangUp  bool
		Consent Consent // what the user is asked to allow; without Until
		Ask     uint64  // the question from outside that was asked aloud; 0: none
	}
)

// What others want.
type (
	// Queued says that what waits to be announced has changed.
	Queued struct{}
	// Interrupt has an announcement told at once.
	Interrupt struct {
		Announcement uint64
		Lang         text.Lang
	}
	// Invite opens the microphone of an idle device by an empty reply.
	Invite struct{}
	// StopReply ends the reply, as the button does.
	StopReply struct{}
	// StopMusic ends the music that plays, with a cause.
	StopMusic struct{ Cause error }
	// Withdraw says that nobody waits for the answer to a question from outside.
	Withdraw struct{ ID uint64 }
	// Drain says that the server stops: the conversation ends with a cause, as soon
	// as the device waits for no reply.
	Drain struct{ Cause error }
	// Leave ends the conversation with a cause.
	Leave struct{ Cause error }
	// Tick says that the deadline of the state has come.
	Tick struct{}
	// Close says that the connection has ended.
	Close struct{}
)

// Seen describes what the actor reads off the clock, the player, the history and the
// features right before it calls [Rules.Next].
type Seen struct {
	Now       time.Time
	Playing   string    // what the device has played of the reply in the last seconds
	Busy      bool      // something of the reply waits to be played, or is being made
	Quiet     time.Time // when the device has played what it was given of the reply; zero: it got nothing
	Stale     bool      // the history has changed since the turn that runs began
	Expecting bool      // something is to come soon, for which the channel stays open
	Song      bool      // there is music, playing or paused
	Queue     Queue
}

// Queue describes what waits to be announced.
type Queue struct {
	Len     int
	Head    uint64 // the announcement that is next
	Lang    text.Lang
	Music   bool // the next one is music
	Resumes bool // it was begun before
}
