// Package quiet keeps quiet mode: whether devices say something that nobody has asked for.
package quiet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/store"
)

// lookEach is the time between two looks at the clock, which may have been set, and at what another server of the same
// store has switched.
const lookEach = time.Minute

// name is that of its row.
const name = "quiet"

// State is quiet mode at a moment. The zero value: it is off.
type State struct {
	On    bool
	Until time.Time // zero: until somebody switches it off
	By    string    // name of who has switched it on
	Since time.Time
}

// over reports whether the time has come.
func (s State) over(now time.Time) bool { return !s.Until.IsZero() && !now.Before(s.Until) }

func (s State) same(as State) bool {
	return s.On == as.On && s.Until.Equal(as.Until) && s.By == as.By && s.Since.Equal(as.Since)
}

// Mode is quiet mode. Its methods may be called at any time.
type Mode struct {
	table *store.Switches // nil: it ends with the program
	log   *slog.Logger

	change sync.Mutex // held while the store and what is known of it change together

	mu     sync.Mutex
	state  State
	told   State // to those who follow
	follow map[int]func()
	last   int
	wake   chan struct{} // size 1: has Run look again
}

// Open returns quiet mode as it was left. A nil table keeps it for as long as the program runs.
func Open(ctx context.Context, table *store.Switches, log *slog.Logger) (*Mode, error) {
	m := &Mode{table: table, log: log, follow: map[int]func(){}, wake: make(chan struct{}, 1)}
	if table == nil {
		return m, nil
	}
	s, err := m.load(ctx)
	m.state = s
	m.told = m.State()
	return m, err
}

// load reads what the store has.
func (m *Mode) load(ctx context.Context) (State, error) {
	row, err := m.table.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	return State{On: true, Until: row.EndsAt, By: row.By, Since: row.At}, nil
}

// On reports whether it is on now.
func (m *Mode) On() bool { return m.State().On }

// State returns how it is now.
func (m *Mode) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.over(time.Now()) {
		return State{}
	}
	return m.state
}

// Begin switches it on until a time; zero: until somebody switches it off. by is the name of who does. What follows it is
// told before Begin returns.
func (m *Mode) Begin(ctx context.Context, until time.Time, by string) error {
	now := State{On: true, By: by, Since: time.UnixMilli(time.Now().UnixMilli())}
	if !until.IsZero() {
		now.Until = time.UnixMilli(until.UnixMilli())
	}
	return m.set(ctx, now)
}

// End switches it off.
func (m *Mode) End(ctx context.Context) error { return m.set(ctx, State{}) }

// set commits a state.
func (m *Mode) set(ctx context.Context, s State) error {
	m.change.Lock()
	defer m.change.Unlock()
	if m.table != nil {
		var err error
		if s.On {
			err = m.table.Put(ctx, store.Switch{Name: name, EndsAt: s.Until, By: s.By, At: s.Since})
		} else if err = m.table.Delete(ctx, name); errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	m.put(s)
	m.tell()
	select {
	case m.wake <- struct{}{}:
	default:
	}
	return nil
}

func (m *Mode) put(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
}

// Follow has told called after each change, until stop is called. told must not wait.
func (m *Mode) Follow(told func()) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	n := m.last
	m.follow[n] = told
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.follow, n)
	}
}

// tell tells those who follow, if it is not as they were told last.
func (m *Mode) tell() {
	now := m.State()
	m.mu.Lock()
	var all []func()
	if !now.same(m.told) {
		for _, told := range m.follow {
			all = append(all, told)
		}
	}
	m.told = now
	m.mu.Unlock()
	for _, told := range all {
		told()
	}
}

// Run tells of its end when its time has come, and takes over what other servers of the same store switch, until ctx ends.
func (m *Mode) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failed := false; ; {
		select {
		case <-timer.C:
		case <-m.wake:
		case <-ctx.Done():
			return
		}
		err := m.look(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			m.log.Warn("whether quiet mode was switched elsewhere is not known", "err", err)
		}
		failed = err != nil
		next := lookEach
		if s := m.State(); !s.Until.IsZero() {
			next = min(next, max(time.Until(s.Until), 0))
		}
		timer.Reset(next)
	}
}

// look takes over what the store has.
func (m *Mode) look(ctx context.Context) (err error) {
	m.change.Lock()
	defer m.change.Unlock()
	if m.table != nil {
		var s State
		if s, err = m.load(ctx); err == nil {
			m.put(s)
		}
	}
	m.tell()
	return err
}
