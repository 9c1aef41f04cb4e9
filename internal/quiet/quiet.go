// Package quiet keeps quiet mode: whether devices say something that nobody has asked for. It is on for all of them, or for
// one, when somebody has switched it on, and in their quiet hours.
package quiet

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/hours"
	"xiaozhi/store"
)

// lookEach is the time between two looks at the clock, which may have been set, and at what another server of the same
// store has switched.
const lookEach = time.Minute

// The names of rows: of all devices, and of one.
const (
	name        = "quiet"
	quietPrefix = "quiet/"
	awakePrefix = "awake/" // its quiet hours do not count until then
)

// State is quiet mode at a moment. The zero value: it is off.
type State struct {
	On    bool
	House bool      // for all devices
	Hours bool      // these are quiet hours; else somebody has switched it on
	Until time.Time // zero: until somebody switches it off
	By    string    // name of who has switched it on
	Since time.Time
}

// over reports whether the time has come.
func (s State) over(now time.Time) bool { return !s.Until.IsZero() && !now.Before(s.Until) }

// Span is quiet hours with the zone in which they count.
type Span struct {
	Hours hours.Set
	Zone  *time.Location
}

// Hours tells the quiet hours that are set. Its methods may be called at any time, and do not wait.
type Hours interface {
	// Of returns those of a device.
	Of(device string) Span
	// All returns all that any device has.
	All() []Span
}

// noHours is [Hours] where there are none.
type noHours struct{}

func (noHours) Of(string) Span { return Span{} }
func (noHours) All() []Span    { return nil }

// Options configure a [Mode].
type Options struct {
	Table *store.Switches // nil: it ends with the program
	Hours Hours           // nil: there are none
	Log   *slog.Logger
}

// Mode is quiet mode. Its methods may be called at any time.
type Mode struct {
	o Options

	change sync.Mutex // held while the store and what is known of it change together

	mu     sync.Mutex
	rows   map[string]State // by the name of their row
	told   map[string]bool  // to those who follow: what was on, by row and by hours
	follow map[int]func()
	last   int
	wake   chan struct{} // size 1: has Run look again
}

// New returns quiet mode that is off.
func New(o Options) *Mode {
	if o.Hours == nil {
		o.Hours = noHours{}
	}
	return &Mode{o: o, rows: map[string]State{}, follow: map[int]func(){}, wake: make(chan struct{}, 1)}
}

// Open returns quiet mode as it was left.
func Open(ctx context.Context, o Options) (*Mode, error) {
	m := New(o)
	if o.Table == nil {
		return m, nil
	}
	rows, err := m.load(ctx)
	m.rows = rows
	m.told = m.sight(time.Now())
	return m, err
}

// load reads what the store has.
func (m *Mode) load(ctx context.Context) (map[string]State, error) {
	all, err := m.o.Table.List(ctx)
	rows := map[string]State{}
	for _, r := range all {
		if r.Name == name || strings.HasPrefix(r.Name, quietPrefix) || strings.HasPrefix(r.Name, awakePrefix) {
			rows[r.Name] = State{On: true, Until: r.EndsAt, By: r.By, Since: r.At}
		}
	}
	return rows, err
}

// State returns whether it is on for all devices now, because somebody has switched it on.
func (m *Mode) State() State {
	s := m.row(name, time.Now())
	s.House = s.On
	return s
}

// row returns a row as it is at a time.
func (m *Mode) row(name string, now time.Time) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.rows[name]; s.On && !s.over(now) {
		return s
	}
	return State{}
}

// Of returns whether it is on for a device now, and why.
func (m *Mode) Of(device string) State {
	now := time.Now()
	if s := m.row(name, now); s.On {
		s.House = true
		return s
	}
	if s := m.row(quietPrefix+device, now); s.On {
		return s
	}
	if m.row(awakePrefix+device, now).On {
		return State{}
	}
	if in, until := m.o.Hours.Of(device).at(now); in {
		return State{On: true, Hours: true, Until: until}
	}
	return State{}
}

// at reports whether a moment lies in the hours, and when that changes.
func (s Span) at(now time.Time) (in bool, until time.Time) {
	if s.Hours.None() {
		return false, time.Time{}
	}
	return s.Hours.At(now.In(s.Zone))
}

// Switched lists the devices for which somebody has switched it on, with how it is for them.
func (m *Mode) Switched() map[string]State {
	m.mu.Lock()
	rows := maps.Clone(m.rows)
	m.mu.Unlock()
	all := map[string]State{}
	for n, s := range rows {
		if device, is := strings.CutPrefix(n, quietPrefix); is && !s.over(time.Now()) {
			all[device] = s
		}
	}
	return all
}

// Begin switches it on for a device, "" all, until a time; zero: until somebody switches it off. by is the name of who does. What
// follows it is told before Begin returns.
func (m *Mode) Begin(ctx context.Context, device string, until time.Time, by string) error {
	now := State{On: true, By: by, Since: time.UnixMilli(time.Now().UnixMilli())}
	if !until.IsZero() {
		now.Until = time.UnixMilli(until.UnixMilli())
	}
	row := name
	if device != "" {
		row = quietPrefix + device
	}
	return m.set(ctx, map[string]State{row: now, awakePrefix + device: {}})
}

// End switches it off for a device, "" all: what somebody has switched on, and the quiet hours until they end. It returns how it
// is for the device then: on, where it is for all.
func (m *Mode) End(ctx context.Context, device string) (State, error) {
	if device == "" {
		return State{}, m.set(ctx, map[string]State{name: {}})
	}
	change := map[string]State{quietPrefix + device: {}}
	if in, until := m.o.Hours.Of(device).at(time.Now()); in {
		if until.IsZero() {
			until = time.Now().Add(24 * time.Hour)
		}
		change[awakePrefix+device] = State{On: true, Until: until, Since: time.UnixMilli(time.Now().UnixMilli())}
	}
	err := m.set(ctx, change)
	return m.Of(device), err
}

// Forget drops what was switched for a device.
func (m *Mode) Forget(ctx context.Context, device string) error {
	return m.set(ctx, map[string]State{quietPrefix + device: {}, awakePrefix + device: {}})
}

// set commits rows; the zero state takes one away.
func (m *Mode) set(ctx context.Context, rows map[string]State) error {
	m.change.Lock()
	defer m.change.Unlock()
	for n, s := range rows {
		m.mu.Lock()
		_, there := m.rows[n]
		m.mu.Unlock()
		if !s.On && !there {
			continue
		}
		if m.o.Table != nil {
			var err error
			if s.On {
				err = m.o.Table.Put(ctx, store.Switch{Name: n, EndsAt: s.Until, By: s.By, At: s.Since})
			} else if err = m.o.Table.Delete(ctx, n); errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			if err != nil {
				return err
			}
		}
		m.mu.Lock()
		if m.rows[n] = s; !s.On {
			delete(m.rows, n)
		}
		m.mu.Unlock()
	}
	m.tell()
	m.Renew()
	return nil
}

// Renew has Run look again: other hours are set.
func (m *Mode) Renew() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Follow has told called after each change, of whichever device, until stop is called. told must not wait.
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

// sight returns what is on, by row and by hours.
func (m *Mode) sight(now time.Time) map[string]bool {
	on := map[string]bool{}
	m.mu.Lock()
	for n, s := range m.rows {
		if !s.over(now) {
			on[n+" "+s.Until.String()+s.By] = true
		}
	}
	m.mu.Unlock()
	for _, s := range m.o.Hours.All() {
		if in, until := s.at(now); in {
			on["hours "+until.String()] = true
		}
	}
	return on
}

// tell tells those who follow, if it is not as they were told last.
func (m *Mode) tell() {
	now := m.sight(time.Now())
	m.mu.Lock()
	var all []func()
	if !maps.Equal(now, m.told) {
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

// Run tells of beginnings and ends when their time has come, and takes over what other servers of the same store switch, until
// ctx ends.
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
			m.o.Log.Warn("whether quiet mode was switched elsewhere is not known", "err", err)
		}
		failed = err != nil
		timer.Reset(m.next(time.Now()))
	}
}

// next returns how long to wait for the next beginning or end.
func (m *Mode) next(now time.Time) time.Duration {
	next := lookEach
	by := func(at time.Time) {
		if !at.IsZero() {
			next = min(next, max(at.Sub(now), 0))
		}
	}
	m.mu.Lock()
	for _, s := range m.rows {
		if !s.over(now) {
			by(s.Until)
		}
	}
	m.mu.Unlock()
	for _, s := range m.o.Hours.All() {
		_, until := s.at(now)
		by(until)
	}
	return next
}

// look takes over what the store has.
func (m *Mode) look(ctx context.Context) (err error) {
	m.change.Lock()
	defer m.change.Unlock()
	if m.o.Table != nil {
		var rows map[string]State
		if rows, err = m.load(ctx); err == nil {
			m.mu.Lock()
			m.rows = rows
			m.mu.Unlock()
		}
	}
	m.mu.Lock()
	maps.DeleteFunc(m.rows, func(_ string, s State) bool { return s.over(time.Now()) })
	m.mu.Unlock()
	m.tell()
	return err
}

// Device is quiet mode as one device has it. Its methods may be called at any time.
type Device struct {
	*Mode

	id string
}

// Device returns quiet mode as a device has it.
func (m *Mode) Device(id string) Device { return Device{m, id} }

// On reports whether it is on now.
func (d Device) On() bool { return d.Of(d.id).On }
