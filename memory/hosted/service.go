// Package hosted keeps what is remembered with a memory service, which finds out by itself what is told in talks.
//
// A [Store] is between a [memory.Book] and the service: it keeps what the service knows of those who talk, so that no turn waits
// for it; its worker gives the service talks that are over, and has it delete what is to be forgotten, again and again until
// that is done. Summaries, and what has to be done yet, are in the store of the server.
package hosted

import (
	"context"
	"errors"

	"xiaozhi/memory"
)

// Service is a memory service. Its methods may be called at the same time; each ends with its context, and within 30 s.
type Service interface {
	// Name is that in the settings and in logs.
	Name() string
	// Facts lists what is known of an owner, at most [memory.MaxFacts]. Nobody else's are among them. An owner that the service does not
	// know has none.
	Facts(ctx context.Context, o memory.Owner) ([]memory.Fact, error)
	// Learn hands over turns of a talk that is over. When it returns nil the service has them, and will not lose them. settled: it has
	// worked them off, so that what it has learned can be deleted; else it will within two minutes.
	Learn(ctx context.Context, o memory.Owner, talk string, said []memory.Said) (settled bool, err error)
	// Remember keeps a text as it is.
	Remember(ctx context.Context, o memory.Owner, f memory.Fact) (id string, err error)
	// Edit puts another text into the place of that of a fact.
	Edit(ctx context.Context, o memory.Owner, id, text string) error
	// Forget deletes a fact, and what else tells it. When it returns nil, it is gone. One that is not there is no error.
	Forget(ctx context.Context, o memory.Owner, f memory.Fact) error
	// ForgetTalk deletes what was learned from a talk. The error is [ErrNoTalks] of a service that cannot tell what that was.
	ForgetTalk(ctx context.Context, o memory.Owner, talk string) error
	// ForgetAll deletes all that is known of an owner. When it returns nil, it is gone.
	ForgetAll(ctx context.Context, o memory.Owner) error
}

// Searcher is a [Service] that finds facts by itself.
type Searcher interface {
	// Search returns the ids of facts that have to do with words, the best first.
	Search(ctx context.Context, o memory.Owner, words string, most int) (ids []string, err error)
}

// ErrNoTalks is that of a service which does not know what it has learned from which talk.
var ErrNoTalks = errors.New("the service does not know what it has learned from which talk")

// Errand is something that a service has to delete.
type Errand struct {
	Owner memory.Owner
	Fact  string // its id
	Talk  string // its id; both "": all of the owner
}

// Desk keeps, beside what is remembered, what a service has to do. Its methods may be called at the same time.
type Desk interface {
	memory.Store
	// Settle notes that a service keeps something of an owner.
	Settle(ctx context.Context, service string, o memory.Owner) error
	// Errands lists what a service has to delete, the oldest first.
	Errands(ctx context.Context, service string) ([]Errand, error)
	// Want notes that a service has to delete something. All of an owner without an agent: of all agents of the device that it keeps
	// something of.
	Want(ctx context.Context, service string, e Errand) error
	// Done says that a service has deleted something.
	Done(ctx context.Context, service string, e Errand) error
	// Ungiven lists talks of which a service was not given all turns that were read: Learned is up to which it was, Turns up to which
	// it is to be.
	Ungiven(ctx context.Context, limit int) ([]memory.Talk, error)
	// Given says up to which turn a service was given a talk.
	Given(ctx context.Context, talk string, turn int) error
}
