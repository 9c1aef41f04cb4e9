package mail

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxInMemory bounds the letters of all devices that are kept in memory alone.
const maxInMemory = 4096

// Memory is a [Store] whose letters end with the program.
type Memory struct {
	mu   sync.Mutex
	byID map[string]Letter
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{byID: map[string]Letter{}} }

// Add implements [Store]. Every device is known.
func (m *Memory) Add(_ context.Context, l Letter, most int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	open := 0
	for _, other := range m.byID {
		if other.Device == l.Device && other.now().Fate == Queued {
			open++
		}
	}
	if open >= most || len(m.byID) >= maxInMemory {
		return ErrFull
	}
	m.byID[l.ID] = l
	return nil
}

// now is a letter as it is at this moment.
func (l Letter) now() Letter {
	if l.Fate == Queued && !l.Ends.IsZero() && !time.Now().Before(l.Ends) {
		l.Fate = Expired
	}
	return l
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id string) (Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.byID[id]
	if !ok {
		return Letter{}, ErrNoLetter
	}
	return l.now(), nil
}

// Last implements [Store].
func (m *Memory) Last(_ context.Context, device string, limit int) (all []Letter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.byID {
		if device == "" || l.Device == device {
			all = append(all, l.now())
		}
	}
	slices.SortFunc(all, func(a, b Letter) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.ID, a.ID)) })
	return all[:min(len(all), max(limit, 0))], nil
}

// First implements [Store].
func (m *Memory) First(_ context.Context, device string) (Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due []Letter
	for _, l := range m.byID {
		if l.Device == device && l.now().Fate == Queued && !time.Now().Before(l.NotBefore) {
			due = append(due, l)
		}
	}
	if len(due) == 0 {
		return Letter{}, ErrNoLetter
	}
	return slices.MinFunc(due, func(a, b Letter) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.ID, b.ID)) }), nil
}

// Change implements [Store].
func (m *Memory) Change(_ context.Context, was, now Letter) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.byID[was.ID]
	if !ok || l.Fate != was.Fate || l.Tries != was.Tries {
		return false, nil
	}
	m.byID[was.ID] = now
	return true, nil
}

// Prolong implements [Store].
func (m *Memory) Prolong(_ context.Context, least time.Duration, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.byID {
		if l.now().Fate == Queued && l.Ends.Before(until) && l.Ends.Sub(l.Made) >= least {
			l.Ends = until
			m.byID[id] = l
		}
	}
	return nil
}

// Tidy implements [Store].
func (m *Memory) Tidy(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byID, func(_ string, l Letter) bool { return l.now().Fate.Over() && l.Made.Before(before) })
	return nil
}
