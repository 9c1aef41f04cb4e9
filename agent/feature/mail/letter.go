// Package mail keeps texts that devices are to be told until they were heard, and says what became of each.
package mail

import (
	"context"
	"errors"
	"time"

	"xiaozhi/internal/text"
)

// Fate says what has become of a letter.
type Fate string

// The fates. Heard, Expired and Refused are the end.
const (
	Queued    Fate = "queued"    // it waits for its device
	Delivered Fate = "delivered" // its device is there and has been given it
	Heard     Fate = "heard"     // something of it was played; Letter.Heard says how much
	Expired   Fate = "expired"   // its device did not come in time
	Refused   Fate = "refused"   // it was withdrawn, or could not be spoken
)

// Over reports whether nothing follows any more.
func (f Fate) Over() bool { return f == Heard || f == Expired || f == Refused }

// Letter is a text that one device is to be told, once.
type Letter struct {
	ID     string
	Device string
	Text   string
	Lang   text.Lang // "": the text tells it, or the device
	Now    bool      // a device that is there is told at once, not at the next pause
	Source string    // who sends it: api, console, …
	By     string    // name of the person; "": nobody is known

	Fate      Fate
	Heard     int // characters of Text that were played
	Tries     int // how often it was begun
	Made      time.Time
	Ends      time.Time // it expires then
	NotBefore time.Time // it is not told again before; zero: at once
	Told      time.Time // its device was given it; zero: not yet
}

// Length returns the number of characters of the text.
func (l *Letter) Length() int { return len([]rune(l.Text)) }

// Errors of letters. Others are of the store.
var (
	ErrNoDevice = errors.New("there is no such device")
	ErrNoLetter = errors.New("there is no such message")
	ErrFull     = errors.New("too many messages wait for this device")
	ErrLength   = errors.New("the text is empty or too long")
	ErrOver     = errors.New("the message was told already")
)

// Store keeps letters. What it has returned from without an error is not lost. All methods may be called at any time.
type Store interface {
	// Add keeps a letter whose ID is new, unless most of its device wait ([ErrFull]). The error is [ErrNoDevice] for a device
	// that is not known.
	Add(ctx context.Context, l Letter, most int) error
	// Get returns a letter, or [ErrNoLetter].
	Get(ctx context.Context, id string) (Letter, error)
	// Last lists the letters of a device, or of all for "", the newest first, at most limit of them.
	Last(ctx context.Context, device string, limit int) ([]Letter, error)
	// First returns the letter that a device is to be told next, or [ErrNoLetter].
	First(ctx context.Context, device string) (Letter, error)
	// Change puts now in place of was, if that still has its fate and its tries; changed says so.
	Change(ctx context.Context, was, now Letter) (changed bool, err error)
	// Prolong moves the end of letters that wait, and may wait for at least a time, to a later one.
	Prolong(ctx context.Context, least time.Duration, until time.Time) error
	// Tidy ends what has waited too long, and forgets what is over and was made before a time.
	Tidy(ctx context.Context, before time.Time) error
}
