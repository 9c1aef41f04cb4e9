package identity

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Record holds everything that is kept of one pair.
type Record struct {
	ID       string // what the server calls the device: its address, or that of a stranger with a mark
	Address  string // the Device-Id, as [Canonical] spells it
	Client   string // hash of the Client-Id (SHA-256, hex); "": it named none
	State    State
	Name     string // given by a person; "": none
	By       string // who accepted it; "open": nobody, it was the first
	Tokens   Tokens
	Keeps    bool // it keeps a token that is left out, as firmware does
	Told     bool // it has described itself, so that Keeps is known
	Board    string
	Firmware string
	First    time.Time // seen
	Seen     time.Time // last; written down once an hour at most
	Since    time.Time // it is in its state
}

// Pairing is a code that waits for a person.
type Pairing struct {
	ID        string // of the record
	Code      string // six digits
	Challenge string
	Remote    string // address that asked
	Began     time.Time
	Ends      time.Time
}

// Change is one step of writing: all of it is kept, or nothing.
type Change struct {
	Save    []Record  // in the place of those with the same ids
	Drop    []string  // ids of records that are forgotten, with their pairings
	Open    []Pairing // in the place of those of the same records
	Settled []string  // ids of records whose pairings are over
}

// Records keep what a [Book] knows. The methods may be called at the same time.
type Records interface {
	// Load returns everything, in any order.
	Load(ctx context.Context) ([]Record, []Pairing, error)
	// Commit writes a change. What it writes is kept, whatever happens after it has
	// returned without an error; with one, nothing has changed. A record that is dropped
	// need not be there. A record is dropped before one is saved.
	Commit(ctx context.Context, c Change) error
}

// Memory is [Records] that end with the program.
type Memory struct {
	mu       sync.Mutex
	records  map[string]Record
	pairings map[string]Pairing
}

// NewMemory returns records that hold nothing.
func NewMemory() *Memory {
	return &Memory{records: map[string]Record{}, pairings: map[string]Pairing{}}
}

// Load implements [Records].
func (m *Memory) Load(context.Context) ([]Record, []Pairing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := slices.SortedFunc(maps.Values(m.records), func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
	pairings := slices.SortedFunc(maps.Values(m.pairings), func(a, b Pairing) int { return strings.Compare(a.ID, b.ID) })
	return records, pairings, nil
}

// Commit implements [Records].
func (m *Memory) Commit(ctx context.Context, c Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range c.Drop {
		delete(m.records, id)
		delete(m.pairings, id)
	}
	for _, r := range c.Save {
		r.Tokens.Offered = slices.Clone(r.Tokens.Offered)
		m.records[r.ID] = r
	}
	for _, p := range c.Open {
		m.pairings[p.ID] = p
	}
	for _, id := range c.Settled {
		delete(m.pairings, id)
	}
	return nil
}
