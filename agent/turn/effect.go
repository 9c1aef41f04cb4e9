package turn

import (
	"errors"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
)

// Why a turn or a conversation ended: read with context.Cause, logged as cause.
var (
	ErrDone     = errors.New("done")
	ErrBargeIn  = errors.New("barge-in")
	ErrAborted  = errors.New("aborted")
	ErrResumed  = errors.New("resumed") // the user went on speaking: the turn is undone
	ErrReplaced = errors.New("replaced by a newer turn")
	ErrPaused   = errors.New("paused") // only music: it goes on
	ErrNoSpeech = errors.New("no speech")
	ErrFailed   = errors.New("failed")
	ErrGoodbye  = errors.New("goodbye")
	ErrIdle     = errors.New("idle")
)

// ByUser reports whether the user has ended a turn, and not the connection or a failure.
func ByUser(cause error) bool {
	return errors.Is(cause, ErrAborted) || errors.Is(cause, ErrBargeIn) || errors.Is(cause, ErrReplaced)
}

// Effect is one thing that the actor has to do: a value of one of the types below.
// No effect waits; they are done in order.
type Effect any

// Effects on the listener.
type (
	// Microphone says whether the device's microphone is open while it plays.
	Microphone struct{ Open bool }
	// Listen begins to listen afresh.
	Listen struct {
		Epoch   uint64
		Mode    wire.Mode
		Silence time.Duration // that ends an utterance
		Lang    text.Lang     // a hint for the recogniser
	}
	// Mute throws frames and the utterance that goes on away.
	Mute struct{}
	// EndUtterance takes what was said so far as all of it.
	EndUtterance struct{}
	// Watch says whether a reply is spoken while the microphone is open: then
	// Interim events are wanted.
	Watch struct{ On bool }
	// Expect changes the language in which the next utterance is expected, while the
	// microphone stays open.
	Expect struct{ Lang text.Lang }
	// AwaitSilence lets the present pause of an utterance end it after that long.
	AwaitSilence struct {
		ID      uint64
		Silence time.Duration
	}
	// Read has the words recognised of an utterance of which there is only sound.
	Read struct{ ID uint64 }
	// Release ends all that is done for an utterance.
	Release struct {
		ID    uint64
		Cause error
	}
	// CloseListener ends the listener.
	CloseListener struct{ Cause error }
)

// Effects on the reply.
type (
	// Begin starts a turn. Speculative ones may not be seen, heard or act.
	Begin struct {
		Turn    uint64
		Request Request
	}
	// Adopt makes a speculation the answer to a request. [Commit] follows.
	Adopt struct {
		Turn    uint64
		Request Request
	}
	// Commit lets a turn be seen and act.
	Commit struct{ Turn uint64 }
	// Hold takes that back, until the next Commit.
	Hold struct{ Turn uint64 }
	// Start sends tts start, and what had to wait for it.
	Start struct{ Turn uint64 }
	// AllowTool lets the turn run the tool that it asked for.
	AllowTool struct{ Turn uint64 }
	// Pause stops play-out, which Resume continues.
	Pause struct{ Turn uint64 }
	// Resume continues play-out.
	Resume struct{ Turn uint64 }
	// Interpose says a phrase in front of what the turn waits for.
	Interpose struct {
		Turn   uint64
		Lang   text.Lang
		Phrase string
	}
	// Stop ends a reply that was played out: tts stop, with a start if there was none.
	Stop struct{ Turn uint64 }
	// Cut ends a reply at once with a cause: tts stop if tts start was sent.
	Cut struct {
		Turn  uint64
		Cause error
	}
	// Remember takes what a turn has left behind into history and log.
	Remember struct{ Turn uint64 }
	// Discard lets go of a speculation that was undone.
	Discard struct{ Turn uint64 }
)

// Other effects.
type (
	// Send sends a message that belongs to no turn.
	Send struct{ Kind wire.MessageKind }
	// EndMusic ends the music that is paused or plays.
	EndMusic struct{}
	// Answer gives the user's words to whoever has asked for them.
	Answer struct {
		ID     uint64
		Words  string
		Unsaid bool // nobody is known to have said them

		Heard   []uint64 // the utterances that they were said in
		Speaker Speaker
	}
	// Drop gives up an announcement that was to be told at once.
	Drop struct{ Announcement uint64 }
	// Ignored says that an utterance was taken for the device's own voice.
	Ignored struct{ ID uint64 }
	// NotUnderstood says that a transcript was rejected.
	NotUnderstood struct{ Text Text }
	// NoRecognizer says that no recogniser knows the user's language.
	NoRecognizer struct{}
	// HangUp ends the connection in good order.
	HangUp struct{ Cause error }
)
