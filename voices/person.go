// Package voices knows the people of a household by their voices: who they are, the prints of their voices, and who is
// speaking in a piece of sound.
//
// A [Book] owns all of it. It is never waited for: who is speaking is told when it is known, and what it does not know is a
// stranger. Sound is looked at and let go; prints alone are kept.
package voices

import (
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
)

// Person is somebody whose voice may be known. They need no account.
type Person struct {
	ID      string
	Name    string // as it is said; once, whatever its letters
	Account string // id of their account; "": they have none
	By      string // who has added them
	At      time.Time
}

// Source says how the sound of a voice came.
type Source string

// The sources.
const (
	Talk    Source = "talk"    // said to a device that had asked for it
	Turn    Source = "turn"    // kept with a turn of a device
	Browser Source = "browser" // recorded on a page
	File    Source = "file"    // sent as a file
)

// Voice is a print of a person's voice.
type Voice struct {
	Print   providers.Print // its Person is the id of one
	Service string          // the section of the settings that has made it
	Source  Source
	Device  string // that the sound came from; "": none
	Length  time.Duration
	At      time.Time
}

// Removal is a print that a service is still to forget.
type Removal struct {
	ID      string
	Service string
	At      time.Time
	Next    time.Time // not before
	Tries   int
	Fault   string // of the last try; "": none was made
}

// Kept holds all people of a store, with their voices.
type Kept struct {
	People   []Person // by name
	Voices   []Voice  // the oldest first
	Removals []Removal
	Changes  int // how often anybody has changed people and voices
}

// Store keeps people and voices. Its methods may be called at the same time; what changes something has committed it when it
// returns nil.
type Store interface {
	Load(ctx context.Context) (Kept, error)
	// Changes counts them, as [Kept] has it.
	Changes(ctx context.Context) (int, error)
	// Add keeps a person: [ErrTaken] if somebody has the name.
	Add(ctx context.Context, p Person) error
	// Edit changes name and account: [ErrNobody], [ErrTaken].
	Edit(ctx context.Context, p Person) error
	// Delete deletes a person with their voices, for good; services are to forget those that they keep. memories: and what is
	// remembered of them. [ErrNobody].
	Delete(ctx context.Context, id string, memories bool) error
	// Begin notes a print that a service is being asked to keep, and which it is to forget unless AddVoice follows.
	Begin(ctx context.Context, r Removal) error
	// AddVoice keeps a voice, of which the newest most stay: [ErrNobody].
	AddVoice(ctx context.Context, v Voice, most int) error
	// DeleteVoice deletes a voice for good; its service is to forget it: [ErrNobody].
	DeleteVoice(ctx context.Context, person, id string) error
	// Removed says that a service has forgotten a print.
	Removed(ctx context.Context, id string) error
	// NotRemoved says why it has not, and when it is asked again.
	NotRemoved(ctx context.Context, id, fault string, next time.Time) error
}

// Errors of people.
var (
	ErrNobody = errors.New("there is no such person or voice")
	ErrTaken  = errors.New("somebody has this name")
	ErrName   = errors.New("a name has 1 to 64 letters, digits, spaces, hyphens, dots and apostrophes")
	ErrFull   = errors.New("there are as many people as can be told apart")
	ErrOff    = errors.New("nothing tells people apart: voice.identify is off, or there is no engine")
)

// Errors of sound that is to be somebody's voice.
var (
	ErrShort  = errors.New("too little was said")
	ErrQuiet  = errors.New("it is too quiet")
	ErrUnlike = errors.New("it does not sound like the other samples of this person")
)

// OtherError says that a voice is that of somebody else.
type OtherError struct{ Name string }

// Error names the other one.
func (e *OtherError) Error() string { return "it sounds like " + e.Name }

const (
	// MaxName is how many characters a name has at most.
	MaxName = 64
	// MaxPeople is how many people there are at most.
	MaxPeople = 64
	// MaxVoices is how many prints a person has at most; the oldest makes room.
	MaxVoices = 12
)
