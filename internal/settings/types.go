package settings

import (
	"context"
	"strings"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/store"
)

// Edit changes one key of what people have set.
type Edit struct {
	Path   []string `json:"path"`
	Value  any      `json:"value,omitempty"`  // as JSON has it; a secret is sealed and its reference kept
	Remove bool     `json:"remove,omitempty"` // what files or defaults say counts again
}

// Test is a service that would change, asked once.
type Test struct {
	Section string
	Role    string
	OK      bool
	First   time.Duration // to the first of its answer
	Total   time.Duration
	Why     string // it failed
}

// Plan is a change that was checked, built and tested, and is not in force.
type Plan struct {
	ID       string
	Base     int // revision that it was made of
	By       string
	At       time.Time
	Changes  []config.Change
	Warnings []config.Warning
	Tests    []Test
	Left     []Left // of what was read from a file
}

// Left is a key of a file that was not taken in.
type Left struct {
	Path []string
	Why  error
}

// Kind says how a revision came.
type Kind string

// The kinds of revisions.
const (
	KindEdit      Kind = "edit"
	KindUndo      Kind = "undo"
	KindAutomatic Kind = "automatic" // the server did worse with the one before
	KindImport    Kind = "import"
)

// Revision is a change that was put in force.
type Revision struct {
	N       int
	At      time.Time
	By      string
	Note    string // why, of one that takes another back
	Kind    Kind
	Changes []config.Change // in what people have set; Old and New are nil where they had not
	Undone  string          // why it was taken back by itself
}

// NoteIn returns the note for a reader of a language. The server's own stand there in both.
func (r Revision) NoteIn(lang text.Lang) string {
	parts := strings.Split(r.Note, " / ") // each half may quote what was said in both
	if len(parts)%2 != 0 || r.Kind != KindUndo && r.Kind != KindAutomatic {
		return r.Note
	}
	half := len(parts) / 2
	return lang.Pick(strings.Join(parts[half:], " / "), strings.Join(parts[:half], " / "))
}

// Machine makes a server of settings beside the one that runs. Its methods may be called at the same time.
type Machine interface {
	// Build makes what other settings need. The settings have their secrets. Nothing is in force before [Stage.Apply].
	Build(ctx context.Context, next *config.Config) (Stage, error)
	// Health says how the server does now.
	Health() Health
}

// Stage holds a server that [Machine.Build] made. Either Apply or Drop ends it.
type Stage interface {
	// Tests asks each service once that would change.
	Tests(ctx context.Context) []Test
	// Apply puts it in force for turns that begin from now on. With an error nothing has changed.
	Apply(ctx context.Context) error
	// Drop throws it away.
	Drop()
}

// Health says how the server does.
type Health struct {
	Ready  bool   // devices can be served
	Why    string // they cannot
	Turns  int    // that have ended since the program started
	Streak int    // of the last turns that failed, one after another
	Fault  string // why the last one failed
}

// Watch is the time after a change in which it is taken back if the server does worse.
type Watch struct {
	Revision int
	Until    time.Time
	Turns    int    // that were ended since
	Failed   int    // of those, one after another up to now
	Stuck    string // why it could not be taken back, although the server does worse
}

// Held is a revision that is not in force, as it does not fit the files any more or the program was started without it.
type Held struct {
	Revision int
	Instead  int             // revision in force in its place; 0: only files and environment count
	Problems []*config.Error // empty: the program was started without it

	set layer // that is in force in its place
}

// Records keep revisions; [store.Settings] is one.
type Records interface {
	Active(ctx context.Context) (store.SettingsRevision, error)
	Get(ctx context.Context, id int) (store.SettingsRevision, error)
	List(ctx context.Context, before, limit int) ([]store.SettingsRevision, error)
	Save(ctx context.Context, s store.SettingsRevision, whyUndone string) (id int, err error)
}

// Vault keeps the secrets that people type, each for where it goes.
type Vault interface {
	Seal(ctx context.Context, by account.Person, name string, use config.SecretUse, value string) error
	Open(ctx context.Context) func(name string, use config.SecretUse) (string, error)
	Names(ctx context.Context) ([]string, error)
	Drop(ctx context.Context, name string) error
}
