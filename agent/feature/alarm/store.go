package alarm

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// Store keeps reminders. What it has returned from without an error is not lost. All
// methods may be called at any time; they end with their context.
type Store interface {
	// Add commits a reminder, whose ID is new.
	Add(ctx context.Context, r Reminder) error
	// Find returns what a query asks for, the earliest due first.
	Find(ctx context.Context, q Query) ([]Reminder, error)
	// Change commits all changes at once, but for those whose reminder has another state,
	// or another time, than it was thought to have. done says which were made.
	Change(ctx context.Context, all ...Change) (done []bool, err error)
	// Shift commits another time for all timers that are waiting: clocks were set by d.
	Shift(ctx context.Context, d time.Duration) error
	// Purge forgets those that are told or deleted and were due, and rang, before a time.
	Purge(ctx context.Context, before time.Time) error
	// Forget deletes all reminders of a device.
	Forget(ctx context.Context, device string) error
}

// Query says which reminders are meant.
type Query struct {
	Device string    // "": of all devices
	States []State   // nil: in any state
	Before time.Time // due at or before it; zero: whenever
	Most   int       // at most so many; 0: all
}

// Change puts a reminder in place of what it was.
type Change struct{ Was, Now Reminder }

// ErrFull says that there is no room for another reminder.
var ErrFull = errors.New("there are too many reminders")

// maxInMemory bounds the reminders of all devices that are kept in memory alone.
const maxInMemory = 65536

// Memory is a [Store] whose reminders end with the program.
type Memory struct {
	mu    sync.Mutex
	byID  map[string]Reminder
	owned map[string][]string // IDs by device
}

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{byID: map[string]Reminder{}, owned: map[string][]string{}}
}

// Add keeps a reminder. The error is [ErrFull] if there are 65536.
func (m *Memory) Add(_ context.Context, r Reminder) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.byID) >= maxInMemory {
		return ErrFull
	}
	m.byID[r.ID] = r
	m.owned[r.Device] = append(m.owned[r.Device], r.ID)
	return nil
}

// among yields the reminders of a device; "": all.
func (m *Memory) among(device string) iter.Seq[Reminder] {
	if device == "" {
		return maps.Values(m.byID)
	}
	return func(yield func(Reminder) bool) {
		for _, id := range m.owned[device] {
			if !yield(m.byID[id]) {
				return
			}
		}
	}
}

// Find returns what a query asks for.
func (m *Memory) Find(_ context.Context, q Query) ([]Reminder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Reminder
	earlier := func(a, b Reminder) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) }
	for r := range m.among(q.Device) {
		switch {
		case q.States != nil && !slices.Contains(q.States, r.State), !q.Before.IsZero() && r.Due.After(q.Before):
		case q.Most == 0:
			found = append(found, r)
		case len(found) < q.Most || earlier(r, found[len(found)-1]) < 0:
			at, _ := slices.BinarySearchFunc(found, r, earlier)
			found = slices.Insert(found[:min(len(found), q.Most-1)], min(at, q.Most-1), r)
		}
	}
	slices.SortFunc(found, earlier)
	return found, nil
}

// Change makes those changes whose reminders are as they were.
func (m *Memory) Change(_ context.Context, all ...Change) (done []bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done = make([]bool, len(all))
	for i, c := range all {
		r, ok := m.byID[c.Was.ID]
		if done[i] = ok && r.State == c.Was.State && r.Due.Equal(c.Was.Due); done[i] {
			m.byID[c.Was.ID] = c.Now
		}
	}
	return done, nil
}

// Shift gives another time to the timers that wait.
func (m *Memory) Shift(_ context.Context, d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, r := range m.byID {
		if r.Kind == Timer && slices.Contains(waiting(), r.State) {
			r.Due = r.Due.Add(d)
			m.byID[id] = r
		}
	}
	return nil
}

// Purge forgets those that are over.
func (m *Memory) Purge(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, r := range m.byID {
		if !r.State.Open() && r.Due.Before(before) && r.Rang.Before(before) {
			delete(m.byID, id)
			left := slices.DeleteFunc(m.owned[r.Device], func(other string) bool { return other == id })
			if m.owned[r.Device] = left; len(left) == 0 {
				delete(m.owned, r.Device)
			}
		}
	}
	return nil
}

// Forget deletes all reminders of a device.
func (m *Memory) Forget(_ context.Context, device string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.owned[device] {
		delete(m.byID, id)
	}
	delete(m.owned, device)
	return nil
}
