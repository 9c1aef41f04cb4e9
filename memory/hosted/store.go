package hosted

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/memory"
)

const (
	factsTime  = 10 * time.Second // for reading what a service knows
	wantTime   = 5 * time.Second  // that somebody waits for a service that is to keep or to delete something
	fresh      = time.Minute      // so long what was read counts
	keptFacts  = 16 << 20         // bytes, of all owners together
	mostReads  = 8                // at the same time
	searchMost = 20
	mostRecent = 1000            // owners, unless more were changed lately
	settling   = 2 * time.Minute // until a service tells of what was changed, and has worked off what it was given
)

// Options configure a [Store]. Desk and Service must be set.
type Options struct {
	Desk    Desk
	Service Service
	Mode    func(memory.Owner) memory.Mode // nil: [memory.Whole]
	// Changed is told that other facts of an owner are known. It may ask the store.
	Changed func(memory.Owner)
	Log     *slog.Logger // nil: nothing is logged
}

// Store keeps facts with a service, and all else at its desk. Its methods may be called at the same time.
type Store struct {
	Desk
	o    Options
	ctx  context.Context //nolint:containedctx // the life of what it has begun, which ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup
	wake chan struct{} // size 1: the worker may have something to do

	facts *lru.Cache[memory.Owner, *known]
	reads chan struct{} // size mostReads
	doing chan struct{} // size 1: one errand at a time, so that none is done once more after something new was kept

	asking sync.Mutex // held while notes of what is to be deleted, and errands, are brought in line

	mu      sync.Mutex
	reading map[memory.Owner]bool
	recent  map[memory.Owner]*recent
	errands map[Errand]bool      // that the service has not done: what they are about is told to nobody
	given   map[string]time.Time // devices whose talks the service may be working off, and until when
}

// recent holds the latest changes: a service may not tell of them yet.
type recent struct {
	version int // grows with each change
	added   []memory.Fact
	gone    map[string]bool // ids
	at      time.Time
}

// known holds the facts that a service has of an owner. It does not change.
type known struct {
	facts []memory.Fact
	at    time.Time
}

// New makes a store; Start has its worker work, Close ends it.
func New(ctx context.Context, o Options) *Store {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Mode == nil {
		o.Mode = func(memory.Owner) memory.Mode { return memory.Whole }
	}
	if o.Changed == nil {
		o.Changed = func(memory.Owner) {}
	}
	ctx, stop := context.WithCancel(ctx)
	return &Store{
		Desk: o.Desk, o: o, ctx: ctx, stop: stop, wake: make(chan struct{}, 1), facts: lru.New[memory.Owner, *known](0, keptFacts),
		reads: make(chan struct{}, mostReads), doing: make(chan struct{}, 1), reading: map[memory.Owner]bool{}, recent: map[memory.Owner]*recent{}, errands: map[Errand]bool{}, given: map[string]time.Time{},
	}
}

var _ memory.Store = (*Store)(nil)

// Start reads what the service has not deleted yet, and has the worker work. It is called once, before anything else.
func (s *Store) Start(ctx context.Context) error {
	open, err := s.Errands(ctx, s.o.Service.Name())
	if err != nil {
		return err
	}
	s.mu.Lock()
	for _, e := range open {
		s.errands[e] = true
	}
	s.mu.Unlock()
	s.wg.Go((&worker{Store: s}).run)
	return nil
}

// Close ends what the store has begun, and waits for it.
func (s *Store) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.wg.Wait()
}

// begin does something beside the caller, until the store is closed. The lock is held.
func (s *Store) begin(do func()) {
	if s.ctx.Err() == nil {
		s.wg.Go(do)
	}
}

// Load implements [memory.Store]. It does not wait for the service: what that knows is there when it was read.
func (s *Store) Load(ctx context.Context, o memory.Owner) (memory.Known, error) {
	k, err := s.Desk.Load(ctx, o)
	if err != nil {
		return k, err
	}
	of, ok := s.facts.Get(o)
	if ok {
		k.Facts = append(k.Facts, s.told(o, of.facts)...)
	}
	if !ok || time.Since(of.at) > fresh {
		s.read(o)
	}
	return k, nil
}

// prefix begins the ids of facts that the service keeps.
func (s *Store) prefix() string { return s.o.Service.Name() + ":" }

// own takes the prefix off an id; false: the fact is not the service's.
func (s *Store) own(id string) (string, bool) { return strings.CutPrefix(id, s.prefix()) }

// Write implements [memory.Store]: what somebody wants remembered is kept by the service, once it has forgotten what it is to forget.
func (s *Store) Write(ctx context.Context, c memory.Change) error {
	for i := range c.Add {
		if err := s.remember(ctx, &c, &c.Add[i]); err != nil {
			return err
		}
	}
	for old := range c.Replace {
		if _, ok := s.own(old); ok {
			if err := s.Forget(ctx, c.Owner, []string{old}); err != nil && !errors.Is(err, memory.ErrLater) && !errors.Is(err, memory.ErrUnknown) {
				return err
			}
			delete(c.Replace, old)
		}
	}
	rest := c
	rest.Add = nil
	if err := s.Desk.Write(ctx, rest); err != nil {
		return err
	}
	if c.Talk != "" {
		s.Wake()
	}
	return nil
}

// remember has the service keep a fact of a change.
func (s *Store) remember(ctx context.Context, c *memory.Change, f *memory.Fact) error {
	if all := (Errand{Owner: c.Owner}); s.isOpen(all) {
		if err := s.run(ctx, all); err != nil { // it would be deleted with all else
			return err
		}
	}
	if err := s.Settle(ctx, s.o.Service.Name(), c.Owner); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, wantTime)
	defer cancel()
	id, err := s.o.Service.Remember(limited, c.Owner, *f)
	if err != nil {
		return err
	}
	for old, by := range c.Replace {
		if by == f.ID {
			c.Replace[old] = s.prefix() + id
		}
	}
	f.ID = s.prefix() + id
	s.changed(c.Owner, f, func(memory.Fact) bool { return false })
	return nil
}

// isOpen reports whether the service has not done an errand.
func (s *Store) isOpen(e Errand) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errands[e]
}

// Wake has the worker look for something to do: talks were deleted, for instance. It does not wait.
func (s *Store) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Edit implements [memory.Store].
func (s *Store) Edit(ctx context.Context, o memory.Owner, id, words string) error {
	own, ok := s.own(id)
	if !ok {
		return s.Desk.Edit(ctx, o, id, words)
	}
	limited, cancel := context.WithTimeout(ctx, wantTime)
	defer cancel()
	if err := s.o.Service.Edit(limited, o, own, words); err != nil {
		return err
	}
	f := memory.Fact{ID: id, Owner: o, Text: words, Told: true, At: time.Now()}
	s.changed(o, &f, func(f memory.Fact) bool { return f.ID == id })
	return nil
}
