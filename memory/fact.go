// Package memory keeps what was learned of the people at a device: facts, and a summary of what was said before.
//
// A [Book] owns all of it. Conversations ask it for a [Profile], whose notes a model is given before it answers; its learner
// reads talks when they are over, and never while somebody waits. What is remembered is data: nothing of it is ever an
// instruction.
package memory

import (
	"context"
	"errors"
	"time"

	"xiaozhi/internal/text"
)

// Owner names whose memories are meant: those of one device with one agent. Nobody else is given them.
type Owner struct {
	Device string // Device-Id
	Agent  string // name; "" in a request: all agents of the device
}

// Fact is something that was learned of the people at a device, or of their household.
type Fact struct {
	ID     string
	Owner  Owner
	Person string // who said it; "": it is not known
	Text   string // one line of [MaxText] bytes at most
	Keys   string // more words by which it is found
	Slot   string // what it tells, if people have one of it, such as their name: another one takes its place; "": many can hold
	Lang   text.Lang
	Talk   string // id of the talk that it was learned from; "": of none
	Turn   string // id of the turn
	At     time.Time
	Sure   int  // in per cent
	Told   bool // somebody asked for it to be remembered

	Ended time.Time // when another took its place; zero: it holds
	By    string    // id of the fact that took its place
}

const (
	// MaxText is how many bytes a fact may have.
	MaxText = 400
	// MaxFacts is how many facts one owner may have; beyond it the least certain and oldest make room.
	MaxFacts = 2000
	// MaxSummary is how many bytes a summary may have.
	MaxSummary = 2000
)

// Summary tells what was said in earlier talks.
type Summary struct {
	Text string // "": nothing was
	At   time.Time
}

// Known is what is kept of an owner: the facts that hold, the newest first, and the summary.
type Known struct {
	Facts   []Fact
	Summary Summary
}

// Talk is a talk of which not all turns were learned from.
type Talk struct {
	ID      string
	Owner   Owner     // of the next of these turns; without an agent from [Store].Open
	Learned int       // the turns up to this one were
	Turns   int       // that it has
	LastAt  time.Time // of its last turn
}

// Said is a turn of a talk.
type Said struct {
	ID    string
	Seq   int
	At    time.Time
	Agent string // whom it is of
	Lang  text.Lang
	Heard string // the user's words; "": the device spoke by itself
	Reply string // what the user heard

	Speaker string // name of the person whose voice it was; "": it is not known

	Forgets bool // the user had something forgotten, which the reply names
}

// Change is what was learned. It is written as a whole.
type Change struct {
	Owner   Owner
	Add     []Fact
	Renew   []string          // ids of facts that were said again
	Replace map[string]string // ids of facts that hold no more, and of those in their place
	Summary *Summary          // nil: it stays
	Talk    string            // "": no talk was learned from
	Learned int               // of Talk
	Give    bool              // a service is to be given the turns of Talk, too
}

// Run tells what reading a talk has cost.
type Run struct {
	Owner    Owner
	Talk     string
	At       time.Time
	Took     time.Duration
	Provider string // "": no model was asked
	Prompt   int    // tokens
	Answer   int    // tokens
	Facts    int    // that were learned
	Vectors  bool   // no talk was read: vectors were made
	Err      error  // why the model's answer was no use; nil: it was
}

var (
	// ErrUnknown says that there is no such device or fact.
	ErrUnknown = errors.New("there is no such device or fact")
	// ErrLater says that what is to be forgotten is not told to anybody any more, and is not deleted everywhere yet: that is done as soon
	// as the service which keeps it answers.
	ErrLater = errors.New("it will be deleted as soon as the service that keeps it answers")
)

// Store keeps memories. Its methods may be called at the same time.
type Store interface {
	// Load returns what is known of an owner.
	Load(ctx context.Context, o Owner) (Known, error)
	// Write commits a change. The error is [ErrUnknown] for a device that is not known. A store that gives facts ids of its own puts
	// them into Add.
	Write(ctx context.Context, c Change) error
	// Edit replaces the text of a fact.
	Edit(ctx context.Context, o Owner, id, text string) error
	// Forget deletes facts of an owner by their ids, for good, and those that they have replaced. The error may be [ErrLater].
	Forget(ctx context.Context, o Owner, ids []string) error
	// ForgetAll deletes all facts and summaries of an owner, for good, and returns how many facts held. Talks up to now are not learned from.
	// The error may be [ErrLater].
	ForgetAll(ctx context.Context, o Owner) (facts int, err error)
	// Open lists talks that were not learned from whole, the oldest first: of any device, at most limit of them.
	Open(ctx context.Context, limit int) ([]Talk, error)
	// Said lists the turns of a talk after one, in their order, at most limit of them.
	Said(ctx context.Context, talk string, after, limit int) ([]Said, error)
	// Spent keeps what a run has cost.
	Spent(ctx context.Context, r Run) error
}
