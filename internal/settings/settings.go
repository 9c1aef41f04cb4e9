// Package settings changes the settings while the server runs, each change as one transaction: it is checked as a file is,
// built and tested beside what runs, shown, put in force for new turns, watched for a minute, and taken back by itself if
// the server does worse. What people have set is kept as revisions in the store, between config.yaml and that of the data
// folder; files are never written.
package settings

import (
	"context"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
)

// Edit changes one key of what people have set.
type Edit struct {
	Path   []string `json:"path"`
	Value  any      `json:"value,omitempty"`  // as JSON has it; a secret is sealed and its reference kept
	Remove bool     `json:"remove,omitempty"` // what files or defaults say counts again
}

// Test is a service that would change, asked once.
type Test struct {
	Section string        `json:"section"`
	Role    string        `json:"role"`
	OK      bool          `json:"ok"`
	First   time.Duration `json:"-"`
	Total   time.Duration `json:"-"`
	Why     string        `json:"why,omitempty"` // it failed
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
	Note    string // why, of an automatic one
	Kind    Kind
	Changes []config.Change
}

// Machine makes a server of settings beside the one that runs. Its methods may be called at the same time.
type Machine interface {
	// Build makes what other settings need. The settings have their secrets. Nothing is in force before [Stage.Apply].
	Build(ctx context.Context, next *config.Config) (Stage, error)
	// Health says how the server does now.
	Health() Health
}

// Stage is what [Machine.Build] made. Either Apply or Drop ends it.
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
	Turns    int // that were ended since
	Failed   int // of those
}

// Settings are those in force, and the way to change them. Its methods may be called at the same time.
type Settings struct{}

// Current returns the settings in force.
func (s *Settings) Current() *config.Config { return nil }

// Revision is that in force; 0: nothing was set.
func (s *Settings) Revision() int { return 0 }

// Plan checks, builds and tests edits of a revision. The error is an [*InvalidError], a [*PinnedError], a [*StaleError]
// or why nothing can be changed at all.
func (s *Settings) Plan(ctx context.Context, by account.Person, base int, edits []Edit) (*Plan, error) {
	return nil, ErrReadOnly
}

// Apply puts a plan in force.
func (s *Settings) Apply(ctx context.Context, by account.Person, planID string) (Revision, error) {
	return Revision{}, ErrReadOnly
}

// Undo takes back what a revision changed.
func (s *Settings) Undo(ctx context.Context, by account.Person, n int) (Revision, error) {
	return Revision{}, ErrReadOnly
}

// Revisions lists revisions older than before, the newest first; 0 begins with the newest.
func (s *Settings) Revisions(ctx context.Context, before, limit int) ([]Revision, error) {
	return nil, nil
}

// Follow has f called when a revision came or the watch changed. f must not wait.
func (s *Settings) Follow(f func()) {}
