package chain

import (
	"slices"
	"time"
)

// Condition says whether a member is asked.
type Condition string

// The conditions of a breaker, as they are told outside.
const (
	Closed   Condition = "closed"    // it is asked as usual
	Open     Condition = "open"      // it is left out for a while, after failures
	HalfOpen Condition = "half_open" // one request tries it, or may
)

// State describes a member at one moment.
type State struct {
	Name      string
	About     string // what it is, of [Options]
	Condition Condition
	Failures  int           // in a row
	Rest      time.Duration // until it is tried again, while it is open
	First     time.Duration // of its last result: how long it took; 0: it has given none
	Given     time.Time     // when that was
	Fault     error         // of the last request that failed; nil: none has
	Failed    time.Time     // when that was
}

// States returns what is known of the members, in the order in which they are asked.
func (l *list[P]) States() []State {
	all := make([]State, len(l.members))
	now := time.Now()
	for i, m := range l.members {
		all[i] = l.breakers[i].state(now)
		all[i].Name, all[i].About = m.Name(), l.opts.About[m.Name()]
	}
	return slices.Clip(all)
}

// state returns what is known at a time. Nothing is changed by it.
func (b *breaker) state(now time.Time) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{Condition: Closed, Failures: b.fails, First: b.first, Given: b.given, Fault: b.fault, Failed: b.faulted}
	switch {
	case b.fails < b.limit():
	case b.tries || !now.Before(b.until):
		s.Condition = HalfOpen
	default:
		s.Condition, s.Rest = Open, b.until.Sub(now)
	}
	return s
}

// gave remembers how long the first result of a request took.
func (b *breaker) gave(first time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first, b.given = max(first, 1), time.Now()
}

// faulty remembers why a request failed.
func (b *breaker) faulty(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault, b.faulted = err, time.Now()
}
