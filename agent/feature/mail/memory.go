package mail

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxInMemory bounds the letters of all devices that are kept in memory alone: of more the oldest that are over make room.
const maxInMemory = 4096

// FreshFor is how long a letter that is meant now is told at once.
const FreshFor = 30 * time.Second

// Memory is a [Store] whose letters end with the program.
type Memory struct {
	mu   sync.Mutex
	byID map[string]Letter
}

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{byID: map[string]Letter{}} }

// Add implements [Store]. Every device is known.
func (m *Memory) Add(_ context.Context, all []Letter, most Bounds) (failed []error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range all {
		why := m.fits(l, most)
		failed = append(failed, why)
		if why == nil {
			m.makeRoom()
			m.byID[l.ID] = l
		}
	}
	return failed, nil
}

// fits reports why a device cannot have a letter. The caller holds mu.
func (m *Memory) fits(l Letter, most Bounds) error {
	open, all := 0, 0
	for _, other := range m.byID {
		if other.Device == l.Device && l.Key != "" && other.Key == l.Key {
			return ErrTwice
		}
		if !other.Fate.Over() {
			all++
			if other.Device == l.Device {
				open++
			}
		}
	}
	if open >= most.Device || all >= min(most.All, maxInMemory) {
		return ErrFull
	}
	return nil
}

// makeRoom forgets the oldest that is over if there are too many. The caller holds mu.
func (m *Memory) makeRoom() {
	if len(m.byID) < maxInMemory {
		return
	}
	over := slices.DeleteFunc(slices.Collect(maps.Values(m.byID)), func(l Letter) bool { return !l.Fate.Over() })
	if len(over) > 0 {
		delete(m.byID, slices.MinFunc(over, func(a, b Letter) int { return a.Made.Compare(b.Made) }).ID)
	}
}

// now is a letter as it is at this moment.
func (l Letter) now() Letter {
	if l.Fate == Queued && !l.Held && !l.Ends.IsZero() && !time.Now().Before(l.Ends) {
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

// List implements [Store].
func (m *Memory) List(_ context.Context, f Filter) (all []Letter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.byID {
		if l = l.now(); f.has(l) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, newer)
	return all[:min(len(all), max(f.Limit, 0))], nil
}

func newer(a, b Letter) int { return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(b.ID, a.ID)) }

func (f *Filter) has(l Letter) bool {
	switch {
	case l.Held, f.Devices != nil && !slices.Contains(f.Devices, l.Device), f.Batch != "" && f.Batch != l.Batch:
		return false
	case f.Open && l.Fate.Over(), f.Over && !l.Fate.Over():
		return false
	}
	return f.Before.At.IsZero() || newer(l, Letter{Made: f.Before.At, ID: f.Before.ID}) > 0
}

// First implements [Store].
func (m *Memory) First(_ context.Context, p Pick) (Letter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	var due []Letter
	for _, l := range m.byID {
		if l.Device == p.Device && p.means(l, now) && l.waits() && !now.Before(l.tellable()) {
			due = append(due, l)
		}
	}
	if len(due) == 0 {
		return Letter{}, ErrNoLetter
	}
	return slices.MinFunc(due, func(a, b Letter) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.At.Compare(b.At), a.Made.Compare(b.Made), cmp.Compare(a.ID, b.ID))
	}), nil
}

// means reports whether a letter is one of those that are meant.
func (p Pick) means(l Letter, now time.Time) bool {
	switch {
	case p.Songs != (l.Kind == Play), p.Loud && l.Priority < Urgent:
		return false
	case p.Songs:
		return true
	}
	return p.Pressing == (l.Priority >= Urgent || l.Now && now.Sub(l.Made) < FreshFor)
}

// waits reports whether a letter may still be told.
func (l Letter) waits() bool { return !l.Held && l.now().Fate == Queued }

// tellable returns from when on a letter may be told.
func (l Letter) tellable() time.Time {
	if l.NotBefore.After(l.At) {
		return l.NotBefore
	}
	return l.At
}

// Due implements [Store].
func (m *Memory) Due(_ context.Context, device string) (at time.Time, p Priority, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, l := range m.byID {
		if l.Device != device || !l.waits() || !l.tellable().After(now) {
			continue
		}
		if by := l.tellable(); at.IsZero() || by.Before(at) || by.Equal(at) && l.Priority > p {
			at, p = by, l.Priority
		}
	}
	return at, p, nil
}

// Change implements [Store].
func (m *Memory) Change(_ context.Context, was, now Letter) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.byID[was.ID]
	if !ok || l.Fate != was.Fate || l.Held != was.Held || l.Begun != was.Begun || l.Tries != was.Tries {
		return false, nil
	}
	m.byID[was.ID] = now
	return true, nil
}

// Prolong implements [Store].
func (m *Memory) Prolong(_ context.Context, device string, least time.Duration, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.byID {
		if (device == "" || l.Device == device) && l.waits() && l.Ends.Before(until) && l.Ends.Sub(l.At) >= least {
			l.Ends = until
			m.byID[id] = l
		}
	}
	return nil
}

// Expire implements [Store].
func (m *Memory) Expire(_ context.Context, limit int) (ended []Letter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.byID {
		if now := l.now(); now.Fate != l.Fate && len(ended) < limit {
			m.byID[id] = now
			ended = append(ended, now)
		}
	}
	return ended, nil
}

// NextEnd implements [Store].
func (m *Memory) NextEnd(context.Context) (at time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.byID {
		if l.Fate == Queued && !l.Held && (at.IsZero() || l.Ends.Before(at)) {
			at = l.Ends
		}
	}
	return at, nil
}

// Recover implements [Store].
func (m *Memory) Recover(context.Context) (lost int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.byID {
		switch {
		case l.Fate == Delivered && l.Begun && l.Heard > 0:
			l.Fate, l.Begun = Heard, false
		case l.Fate == Delivered && l.Begun:
			l.Fate, l.Why, l.Begun = Refused, Lost, false
			lost++
		case l.Fate == Delivered:
			l = l.back()
		case l.Held:
			l.Held = false
		}
		m.byID[id] = l
	}
	return lost, nil
}

// Purge implements [Store].
func (m *Memory) Purge(_ context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byID, func(_ string, l Letter) bool { return l.now().Fate.Over() && l.Made.Before(before) })
	return nil
}
