package memory

import "context"

// Engine remembers for conversations. Its methods may be called at the same time. [Book] is the one that comes with the program.
type Engine interface {
	// Mode says how much is remembered for an owner.
	Mode(o Owner) Mode
	// Open returns what is known of an owner, for a conversation with it, which closes it at its end. It does not wait: what is known
	// is read meanwhile.
	Open(o Owner) Recollection
	// Remember keeps what somebody asks for. known: it was known already, and kept is what was. The error may be [ErrEmpty].
	Remember(ctx context.Context, f Fact) (kept Fact, known bool, err error)
	// Forget deletes facts of an owner for good. The error is [ErrUnknown], or [ErrLater].
	Forget(ctx context.Context, o Owner, ids ...string) error
	// ForgetAll deletes all that is known of an owner for good, and returns how many facts that were. The error may be [ErrLater].
	ForgetAll(ctx context.Context, o Owner) (facts int, err error)
	// Warm gets ready for a question that will soon come.
	Warm(ctx context.Context) error
	// Left says that a device has gone: its talk may be over soon. It does not wait.
	Left()
}

// Recollection holds the facts and the summary of one owner. Its methods may be called at the same time, until Close.
type Recollection interface {
	// Notes returns what a model should know before it answers words; facts: false gives the summary alone. What is not known when
	// ctx ends is left out.
	Notes(ctx context.Context, words string, facts bool) Notes
	// Known returns all that is known, what matters most first.
	Known(ctx context.Context) (Known, error)
	// Find returns the facts that have to do with words, by words or by meaning, the best first.
	Find(ctx context.Context, words string, most int) ([]Fact, error)
	// Named returns the facts that share words with some, the best first.
	Named(ctx context.Context, words string, most int) ([]Fact, error)
	Close()
}

var (
	_ Engine       = (*Book)(nil)
	_ Recollection = (*Profile)(nil)
)
