// Package mail has devices say, ask or play what others send them, awake or not, each once, and says what became of each.
package mail

import (
	"context"
	"errors"
	"time"

	"xiaozhi/internal/text"
)

// Kind says what a letter has its device do.
type Kind string

// The kinds.
const (
	Say  Kind = "say"  // speak a text
	Ask  Kind = "ask"  // speak a question, and keep what is said to it
	Play Kind = "play" // play a song
)

// Priority says what goes first on a device, and what its quiet hours hold back.
type Priority int

// The priorities.
const (
	Low    Priority = -1 // after all others; no channel is kept open for it
	Normal Priority = 0
	Urgent Priority = 1 // before all others, also in quiet hours
)

// String returns the name of a priority.
func (p Priority) String() string {
	return map[Priority]string{Low: "low", Normal: "normal", Urgent: "urgent"}[p]
}

// ParsePriority reads the name of a priority; "" is normal.
func ParsePriority(name string) (Priority, error) {
	for _, p := range []Priority{Low, Normal, Urgent} {
		if name == p.String() || name == "" && p == Normal {
			return p, nil
		}
	}
	return Normal, ErrPriority
}

// Fate says what has become of a letter.
type Fate string

// The fates. All but the first two are the end.
const (
	Queued    Fate = "queued"    // it waits for its device, or for its time
	Delivered Fate = "delivered" // its device is there and has been given it
	Heard     Fate = "heard"     // something of it was played; Letter.Heard says how much
	Answered  Fate = "answered"  // of a question: Letter.Answer is what was said to it
	Expired   Fate = "expired"   // its device did not come in time
	Refused   Fate = "refused"   // it was not told; Letter.Why says why
)

// Over reports whether nothing follows any more.
func (f Fate) Over() bool { return f != Queued && f != Delivered }

// Why says why a letter was refused.
type Why string

// The reasons.
const (
	Withdrawn Why = "withdrawn" // somebody has taken it back
	Unheard   Why = "unheard"   // it was begun five times, and nothing of it was heard
	Lost      Why = "lost"      // the program ended while it was being told: it may have been heard, and is not told again
	NoSong    Why = "no-song"   // there is nothing to play
	TooMany   Why = "full"      // too much waited for its device; it is not kept
)

// Letter is something that one device is to say, ask or play, once.
type Letter struct {
	ID     string
	Batch  string // that it was sent with; its own id if it was sent alone
	Device string
	Kind   Kind
	Text   string    // what is said, or asked; of a song its title, once that is known
	Prompt string    // of Say: told to the model, which words it; Text is said if it fails
	Song   string    // of Play: a name, or a URL
	Lang   text.Lang // "": the text tells it, or the device
	Now    bool      // a device that is there now is told at once, not at the next pause
	Source string    // who sends it: api, console, job, …
	By     string    // name of the person; "": nobody is known
	Key    string    // its device gets one letter with that key; "": it has none

	Priority Priority

	Fate      Fate
	Why       Why    // of Refused
	Held      bool   // of Queued: it is not told before whoever has sent it says more, or the program has ended
	Begun     bool   // of Delivered: it is being told
	Heard     int    // characters of it that were played; of a song seconds
	Answer    string // to a question
	Tries     int    // how often it was begun
	Made      time.Time
	At        time.Time // it is not told before
	Ends      time.Time // it expires then
	NotBefore time.Time // it is not tried again before; zero: at once
	Told      time.Time // its device was given it; zero: not yet
}

// Length returns the number of characters of the text. What a model words has no length of its own: as many as were heard.
func (l *Letter) Length() int {
	if l.Prompt != "" || l.Kind == Play {
		return l.Heard
	}
	return len([]rune(l.Text))
}

// Errors of letters. Others are of the store.
var (
	ErrNoDevice = errors.New("there is no such device")
	ErrNoLetter = errors.New("there is no such message")
	ErrFull     = errors.New("too many messages wait for this device")
	ErrLength   = errors.New("the text is empty or too long")
	ErrOver     = errors.New("the message was told already")
	ErrTwice    = errors.New("the device has had this message already")
	ErrTime     = errors.New("the time is too far away")
	ErrPriority = errors.New("there is no such priority: low, normal or urgent")
	ErrNoSong   = errors.New("there is no such song")
)

// Bounds limit how many letters are not over.
type Bounds struct{ Device, All int }

// Pick says which letters of a device are meant.
type Pick struct {
	Device   string
	Songs    bool // those of Play, else all others
	Pressing bool // of others: urgent ones and those that are fresh and meant now; else only those that are neither
	Loud     bool // only urgent ones
}

// Filter says which letters are listed.
type Filter struct {
	Devices []string // nil: of all devices
	Batch   string   // "": of any
	Open    bool     // only what is not over
	Over    bool     // only what is over
	Before  Cursor   // only what was made before; zero: all
	Limit   int      // at most so many
}

// Cursor is the place of a letter in a list.
type Cursor struct {
	At time.Time
	ID string
}

// Store keeps letters. What it has returned from without an error is not lost. All methods may be called at any time.
type Store interface {
	// Add keeps letters whose IDs are new, all at once, but for those that cannot be: failed has for each nil, [ErrNoDevice] for a
	// device that is not known, [ErrTwice] or [ErrFull].
	Add(ctx context.Context, all []Letter, most Bounds) (failed []error, err error)
	// Get returns a letter, or [ErrNoLetter].
	Get(ctx context.Context, id string) (Letter, error)
	// List lists letters, the newest first, but for those that are held.
	List(ctx context.Context, f Filter) ([]Letter, error)
	// First returns the letter that a device is to be told next, or [ErrNoLetter].
	First(ctx context.Context, p Pick) (Letter, error)
	// Due returns when the next letter of a device that may not be told yet may be, and its priority. The zero time: none waits.
	Due(ctx context.Context, device string) (time.Time, Priority, error)
	// Change puts now in place of was, if that still has its fate and its tries; changed says so.
	Change(ctx context.Context, was, now Letter) (changed bool, err error)
	// Prolong moves the end of the letters that wait for a device, "" all, and may wait for at least a time, to a later one.
	Prolong(ctx context.Context, device string, least time.Duration, until time.Time) error
	// Expire ends what has waited too long, at most limit of it, and returns that.
	Expire(ctx context.Context, limit int) ([]Letter, error)
	// NextEnd returns when the next of what waits ends; zero: nothing does.
	NextEnd(ctx context.Context) (time.Time, error)
	// Recover takes up what an earlier run has left: what was delivered waits again, unless it was begun, which is [Lost], or heard
	// as far as is known; what was held waits. It returns how many were lost.
	Recover(ctx context.Context) (lost int, err error)
	// Purge forgets what is over and was made before a time.
	Purge(ctx context.Context, before time.Time) error
}
