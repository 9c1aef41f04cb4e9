// Package feature holds what a conversation and its features know of one another.
// A feature is something that a conversation can do beside answering: timers,
// music, long calls. It is a package that implements [Feature], and one line in
// the list of internal/app.
package feature

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// KeepWaiting is how long a device's record is kept for what waits to be told.
const KeepWaiting = 24 * time.Hour

// Feature makes the instances of a feature. All conversations share it.
type Feature interface {
	// Name is the name of its state in a device's record.
	Name() string
	// Attach joins the feature to a conversation that begins. state is what Detach
	// gave for this device last; nil: nothing. It is called on the conversation's goroutine.
	Attach(h Host, state State) Instance
}

// Instance is a feature in one conversation, on whose goroutine all methods run. It
// may implement [Handling], [Timed], [Lasting] and [Calls] too, and [providers.Warmer]: it is warmed when somebody begins to speak.
type Instance interface {
	// Expects reports whether something is to come soon, for which the channel stays open.
	Expects(now time.Time) bool
	// Detach ends the instance with its conversation. It returns what the device's
	// record keeps for the next Attach; nil: nothing.
	Detach() State
}

// State is kept of a device for a feature between conversations.
type State interface {
	// Keep returns for how long it must not be lost after the conversation has ended at
	// left; 0: it need not be kept. It may be called while other goroutines work on it.
	Keep(left time.Time) time.Duration
	// Close ends what it has running. The record is given up.
	Close()
}

// Handling is an [Instance] that completes tools which name a handler in
// [mcp.ActionResponseCall].
type Handling interface {
	// Handler returns its handler of a name; nil: there is none. It may be called at any time.
	Handler(name string) Handler
}

// Answer holds a user's words.
type Answer struct {
	Words string
	// Doubtful says that they may not be what the user says to the question: they were
	// typed where the user speaks, or something else was told after it.
	Doubtful bool
	Speaker  mcp.Speaker
	Sound    []int16 // of the words, at [providers.VoiceRate]; nil: it was not kept
}

// Handler completes a tool. args are the tool's arguments, of any shape; an error
// says what is wrong with them. It must not wait: what waits is its Finish.
type Handler func(from Caller, args any) (think.Handled, error)

// Caller names the one for whom a handler runs.
type Caller struct {
	Lang text.Lang
	Turn uint64 // 0: somebody outside
	Hand bool   // of 0: a person, who waits for it

	Speaker mcp.Speaker
}

// Timed is an [Instance] that acts at a time.
type Timed interface {
	// Deadline returns when Tick is due; zero: never.
	Deadline() time.Time
	Tick(now time.Time)
}

// Noting is an [Instance] that knows something that a model should know before it answers.
type Noting interface {
	// Notes returns what a model that is called agent is told before it answers words, which may be a guess at what is being said. "": the
	// server speaks by itself. lang is that of the system prompt. It changes nothing, waits 30 ms at most, and may be called by any goroutine until Detach has returned.
	// The context carries the [mcp.Info] of the turn: who is speaking.
	Notes(ctx context.Context, agent, words string, lang text.Lang) think.Notes
}

// Lasting is an [Instance] that plays sound in the background, like music.
type Lasting interface {
	// Lasts reports whether there is such sound, playing or paused.
	Lasts() bool
	// End ends it: somebody has said a stop-word or pressed the button.
	End()
}

// Player is an [Instance] that plays songs for others.
type Player interface {
	// Play plays a song in the background, in place of another one. urgent: in quiet mode too. told is called once when it is over,
	// at the latest by Detach, unless an error is returned.
	Play(id, title string, urgent bool, told func(Told)) error
}

// Calls is an [Instance] that takes the calls which outlast their turn. Its methods
// may be called at any time.
type Calls interface {
	// Late takes the true outcome of a control whose success was assumed.
	Late(p router.Prepared, response mcp.ActionResponse)
	// Begin starts a job, which does not end with ctx. The error says why not, in lang.
	Begin(ctx context.Context, p router.Prepared, lang text.Lang) error
}

// QuietFollower is an [Instance] that is told when quiet mode begins and ends.
type QuietFollower interface {
	QuietChanged(on bool)
}

// Quiet tells when devices say nothing that nobody has asked for. Its methods may be called at any time, and do not wait.
type Quiet interface {
	On() bool
	// Follow has told called after each change, until stop is called. told must not wait.
	Follow(told func()) (stop func())
}

// Host is the conversation as a feature sees it. But for Env, Quiet, HandlerOf, Post and Ended, its
// methods are for the conversation's goroutine, on which Attach, Handler, Tick,
// Done and Answer run.
type Host interface {
	Env() Env
	// Agent is the name of whom the device talks to.
	Agent() string
	// Lang returns what is spoken when no text tells the language.
	Lang() text.Lang
	// Quiet reports whether only what somebody has asked for is told now.
	Quiet() bool
	// State returns a copy of the state that decides who may speak.
	State() turn.State
	// Step has the rules take in what others may want: [turn.Invite], [turn.StopReply],
	// [turn.StopMusic], [turn.Leave].
	Step(e turn.Event)
	// Announce has something told. The error is [ErrQueueFull], or [ErrQuiet] for what nobody has asked for and
	// somebody waits for: it has a Done. Without, it waits until quiet mode ends.
	Announce(a Announcement) (id uint64, err error)
	// Withdraw says that an announcement is not wanted any more: if it waits it is not
	// told, and its question is closed. No call of its Answer follows.
	Withdraw(id uint64)
	// Forget begins the dialogue anew: neither what was said before nor the turn, if it
	// is not 0, is kept.
	Forget(turn uint64)
	// SetRole takes another agent from the next turn on; "": the device's own. It reports
	// whether it is another than that. The error is [ErrNoRole].
	SetRole(name string) (other bool, err error)
	// SetResult sets the one result of a tool call in the history.
	SetResult(callID, result string)
	// KeepSound has the sound of what is said from now on be given to [Announcement].Answer, or not any more. It reports whether
	// that can be: something is there that tells people apart.
	KeepSound(on bool) bool
	// Post has f run on the conversation's goroutine, from another one, unless the
	// conversation ends before.
	Post(f func())
	// Ended reports whether the conversation is over.
	Ended() bool
	// HandlerOf returns the handler of a name, of whichever feature; nil: there is none.
	HandlerOf(name string) Handler
	// Player returns what plays songs; nil: nothing does.
	Player() Player
}

// Why a conversation does not do what is asked of it.
var (
	ErrOver      = errors.New("the device is not connected any more") // it has ended
	ErrQueueFull = errors.New("too much is waiting to be told on this device")
	ErrQuiet     = errors.New("quiet mode is on: the device says nothing that nobody has asked it for")
	ErrNoRole    = errors.New("there is no agent of that name")
)

// Env holds what stays the same during a conversation, but for the zone, which may be another one in the next turn.
type Env struct {
	Session wire.Session
	Texts   *prompts.Set
	Zone    *time.Location
	Tools   *router.Router
	Log     *slog.Logger
}

// Announcement is something that the server says, or plays, without being asked. Of
// Sound, Instruction and Text at least one is set; Sound comes first.
type Announcement struct {
	Lang  text.Lang
	Title string // shown while Sound plays
	// Sound is called when the turn begins; the turn reads what it returns. nil: nothing is played.
	Sound func() iter.Seq2[providers.Sound, error]
	// Instruction is told to the model, which words it; Text is spoken when the model
	// fails. "": Text is spoken as it is.
	Instruction string
	Text        string

	Asked      bool // a person wants it, now or at this time: it is told in quiet mode too
	Now        bool // at once: a reply that is going on is cut
	First      bool // before all that waits
	Owed       bool // it can wait nowhere else: more of its kind may wait
	Background bool // music: everything else is told before it and cuts it; only one may wait
	Resumes    bool // of Background: it was begun before
	SoundTells bool // Sound says it all: once it was heard, nothing is repeated

	// Begin is called by the turn before anything is heard, and may wait; an error: nothing is said. nil: it begins at once.
	Begin func(ctx context.Context) error
	// Done is told once how it ended; nil: what was not heard at all is told again.
	Done func(Told)
	// Answer gets the user's next words, which nobody else answers, if something of
	// the announcement was heard; nil: they are answered as ever.
	Answer func(Answer)
}

// Told describes what became of an announcement. Its zero value: it was given up
// before it began; with [ErrQuiet], because quiet mode has begun.
type Told struct {
	Heard  string        // the words of it that the user has heard
	Whole  bool          // it was heard to its end
	Played time.Duration // of its sound
	Cause  error         // how its turn ended, one of package turn or why the connection ended
	Err    error         // what failed; nil: nothing
}
