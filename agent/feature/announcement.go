package feature

import (
	"errors"
	"iter"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// ErrQueueFull says that an announcement is refused.
var ErrQueueFull = errors.New("too much is waiting to be told on this device")

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

	Now        bool // at once: a reply that is going on is cut
	Owed       bool // it can wait nowhere else: more of its kind may wait
	Background bool // music: everything else is told before it and cuts it; only one may wait
	Resumes    bool // of Background: it was begun before
	SoundTells bool // Sound says it all: once it was heard, nothing is repeated

	// Done is told once how it ended; nil: what was not heard at all is told again.
	Done func(Told)
	// Answer gets the user's next words, which nobody else answers, if something of
	// the announcement was heard; nil: they are answered as ever.
	Answer func(words string)
}

// Told describes what became of an announcement. Its zero value: it was given up
// before it began.
type Told struct {
	Heard  string        // the words of it that the user has heard
	Whole  bool          // it was heard to its end
	Played time.Duration // of its sound
	Cause  error         // how its turn ended, one of package turn or why the connection ended
	Err    error         // what failed; nil: nothing
}
