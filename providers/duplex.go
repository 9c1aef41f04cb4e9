package providers

import (
	"context"
	"iter"
	"time"
)

// DuplexRequest opens a talk with a provider that hears and speaks by itself.
type DuplexRequest struct {
	Instructions string    // what a system message says elsewhere
	History      []Message // what was said before; text only
	Tools        []ToolSpec
	Language     string         // BCP-47 tag; "" when nobody knows
	Voice        string         // "" for the provider's own choice
	Zone         *time.Location // in which the talk is held; nil: that of the provider
}

// Duplex hears and speaks: for a turn it stands for recogniser, model and voice. It takes
// no trial and no hedge, and calls only tools of this server and of the device.
type Duplex interface {
	// Name is the provider's name in the config and in logs.
	Name() string
	// Open begins a session. It does not dial: that happens at the first Write.
	Open(ctx context.Context, req DuplexRequest) (DuplexSession, error)
}

// DuplexSession is one talk. Write belongs to one goroutine, Respond, Truncate and Discard
// to another; Close may be called by any, at any time and more than once. The end of the
// context of Open ends it too. Where the service ends its own session, the next utterance
// begins another, with what was said until then.
type DuplexSession interface {
	// Write hands over sound of the microphone, mono at 16 kHz. It copies pcm and
	// never waits; more than [MaxUtterance] without an answer fails.
	Write(pcm []int16) error
	// Respond ends what the user says and streams the answer; with results it goes on
	// after tool calls, which end the loop. Leaving the loop cancels the answer. An
	// error is the last thing yielded; what was written until then is given up.
	Respond(ctx context.Context, results []ToolResult) iter.Seq2[DuplexDelta, error]
	// Truncate says, after a cut, how much was played of the sound since the last
	// Respond without results. It does not wait.
	Truncate(heard time.Duration) error
	// Discard gives up what was written since the last Respond: it was no utterance. It
	// does not wait.
	Discard() error
	// Close ends the session and frees its connection without waiting for the other side.
	Close() error
}

// DuplexDelta is a piece of an answer. Any of its members may be set.
type DuplexDelta struct {
	Heard     string     // the user's words, as far as they are known; replaces what came before
	Hearing   bool       // Heard is only the beginning: more is likely to come at once
	Text      string     // of what is spoken, to be added
	Sound     Sound      // of it
	ToolCalls []ToolCall // complete calls
	Usage     Usage      // what the answer has cost; with the last delta, where it is known
}

// ToolResult is the result of a call, as the model is to read it.
type ToolResult struct {
	ID     string // of [ToolCall]
	Name   string
	Output string
	Failed bool
}
