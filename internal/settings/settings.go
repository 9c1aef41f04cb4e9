// Package settings changes the settings while the server runs, each change as one transaction: it is checked as a file is,
// built and tested beside what runs, shown, put in force for new turns, watched for a minute, and taken back by itself if
// the server does worse. What people have set is kept as revisions in the store, between config.yaml and that of the data
// folder; files are never written.
package settings

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/store"
)

// Options make [Settings].
type Options struct {
	Sources *config.Sources // nil: they cannot be changed
	Records Records         // nil: nothing is kept, so nothing can be changed
	Vault   Vault           // nil: no secret can be typed
	Without bool            // what people have set does not count until somebody changes it
	Look    bool            // nothing is written at the start
	Audit   func(ctx context.Context, by account.Person, act, object string, outcome error)
	Log     *slog.Logger // nil: discarded
}

// Settings are those in force, and the way to change them. Its methods may be called at the same time.
type Settings struct {
	o        Options
	changing chan struct{} // one change at a time
	end      context.CancelFunc
	alive    context.Context
	watching sync.WaitGroup

	from    maker
	safe    safe
	past    past
	waiting waiting

	mu        sync.Mutex
	machine   Machine // nil: the server does not run yet
	now       state
	held      *Held
	watch     *watch
	unproven  *state // before the newest, whose minute the last program did not see the end of; nil: none
	followers []func()
}

// state holds the settings in force with the layer that made them so.
type state struct {
	revision int
	set      layer
	config   *config.Config
}

// Open reads the newest revision, or the last one before it that fits the files. The error says what is wrong with the
// files themselves, or that the revisions cannot be read.
func Open(ctx context.Context, o Options) (*Settings, []config.Warning, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Audit == nil {
		o.Audit = func(context.Context, account.Person, string, string, error) {}
	}
	s := &Settings{
		o: o, changing: make(chan struct{}, 1), from: maker{o.Sources, o.Vault}, safe: safe{vault: o.Vault, log: o.Log}, past: past{o.Records},
		waiting: waiting{plans: map[string]*planned{}},
	}
	lasting := context.WithoutCancel(ctx)
	s.alive, s.end = context.WithCancel(lasting)
	s.safe.life = func(limit time.Duration) (context.Context, context.CancelFunc) {
		return context.WithTimeout(lasting, limit)
	}
	if o.Sources == nil {
		s.now.set = layer{}
		return s, nil, nil
	}
	if o.Records == nil {
		c, warnings, err := s.from.load(ctx, layer{}, 0)
		s.now = state{set: layer{}, config: c}
		return s, warnings, err
	}
	newest, err := o.Records.Active(ctx)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		if !o.Look { // else the schema is an older one, from when nobody could set anything
			return nil, nil, err
		}
		newest = store.SettingsRevision{}
	}
	warnings, err := s.start(ctx, newest)
	if err != nil {
		return nil, nil, err
	}
	if !o.Look {
		s.safe.sweep(ctx, o.Records)
	}
	return s, warnings, nil
}

// Fixed returns settings that cannot be changed.
func Fixed(ctx context.Context, c *config.Config) *Settings {
	s, _, _ := Open(ctx, Options{}) // of no sources: nothing can fail
	s.now.config = c
	return s
}

// start puts the newest revision in force, or what can be in its place.
func (s *Settings) start(ctx context.Context, newest store.SettingsRevision) (warnings []config.Warning, err error) {
	s.now = state{revision: newest.ID, set: layer{}}
	held := &Held{Revision: newest.ID, set: layer{}}
	if s.now.set, err = readLayer(newest.Doc); err != nil {
		held.Problems = []*config.Error{{English: err.Error()}}
		s.now.set = layer{}
	} else if !s.o.Without || newest.ID == 0 {
		if s.now.config, warnings, err = s.from.load(ctx, s.now.set, newest.ID); err == nil {
			s.unproven = s.beforeNew(ctx, newest)
			return warnings, nil
		}
		held.Problems = problemsOf(err)
	}
	if newest.ID == 0 {
		return nil, err
	}
	s.held = held
	if !s.o.Without {
		for _, p := range held.Problems {
			s.o.Log.Error("what people have set does not fit the files, and does not count", "revision", newest.ID, "why", p)
		}
		if s.lastGood(ctx, newest.ID) {
			return nil, nil
		}
	}
	s.now.config, warnings, err = s.from.load(ctx, layer{}, 0)
	return warnings, err
}

// beforeNew returns what was in force before a revision that is so young that its watch did not end; nil: it did, or cannot begin.
func (s *Settings) beforeNew(ctx context.Context, newest store.SettingsRevision) *state {
	if s.o.Look || newest.ID == 0 || Kind(newest.Kind) == KindAutomatic || time.Since(newest.At) >= watchTime {
		return nil
	}
	set, _, err := s.past.one(ctx, newest.BaseID)
	if err != nil {
		return nil
	}
	return &state{revision: newest.BaseID, set: set}
}

// lastTried is how many revisions are tried in the place of one that is not valid.
const lastTried = 20

// lastGood puts the newest of the revisions before one in force that is valid. false: there is none.
func (s *Settings) lastGood(ctx context.Context, before int) bool {
	all, err := s.o.Records.List(ctx, before, lastTried)
	if err != nil {
		return false
	}
	for _, r := range all {
		set, err := readLayer(r.Doc)
		if err != nil || r.State == store.SettingsUndone {
			continue
		}
		if c, _, err := s.from.load(ctx, set, r.ID); err == nil {
			s.now.config, s.held.Instead, s.held.set = c, r.ID, set
			return true
		}
	}
	return false
}

// Run gives the machine of the server that runs, from when on the settings can be changed. A watch that the end of the last
// program has cut short begins anew.
func (s *Settings) Run(m Machine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine = m
	if s.unproven != nil {
		s.observe(s.now.revision, *s.unproven, Health{}, nil)
		s.watch.anew, s.unproven = true, nil
	}
}

// Close drops what is planned and ends the watch. The machine is not asked afterwards. It may be called again.
func (s *Settings) Close() {
	if s.alive.Err() != nil {
		return
	}
	s.end()
	s.changing <- struct{}{} // what goes on ends, and nothing begins
	s.watching.Wait()
	s.mu.Lock()
	s.machine = nil
	s.mu.Unlock()
	s.waiting.clear()
}

// Current returns the settings in force.
func (s *Settings) Current() *config.Config { return s.state().config }

// Revision is the newest one, of which the next is made; 0: nothing was set.
func (s *Settings) Revision() int { return s.state().revision }

func (s *Settings) state() state {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Held says why the newest revision is not in force; nil: it is.
func (s *Settings) Held() *Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// Changeable says why nothing can be changed; nil: it can.
func (s *Settings) Changeable() error {
	_, err := s.builder()
	return err
}

// builder returns what builds changes.
func (s *Settings) builder() (Machine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.o.Sources == nil || s.o.Records == nil:
		return nil, ErrNoStore
	case !s.now.config.Console.Edit:
		return nil, ErrReadOnly
	case s.machine == nil:
		return nil, ErrNotReady
	}
	return s.machine, nil
}

// Follow has f called when a revision came or the watch changed. f must not wait.
func (s *Settings) Follow(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followers = append(s.followers, f)
}

func (s *Settings) tell() {
	s.mu.Lock()
	followers := slices.Clone(s.followers)
	s.mu.Unlock()
	for _, f := range followers {
		f()
	}
}

// alone waits until no other change goes on. The function ends this one.
func (s *Settings) alone(ctx context.Context) (done func(), err error) {
	select {
	case s.changing <- struct{}{}:
		return func() { <-s.changing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.alive.Done():
		return nil, ErrNotReady
	}
}

// problemsOf lists what the loader of the settings found.
func problemsOf(err error) (all []*config.Error) {
	if p, ok := err.(*config.Error); ok { //nolint:errorlint // a joined error has several
		return []*config.Error{inForm(p)}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // as above
		for _, e := range joined.Unwrap() {
			all = append(all, problemsOf(e)...)
		}
		return all
	}
	if err != nil {
		all = append(all, &config.Error{English: err.Error()})
	}
	return all
}

// inForm returns a problem without the place of a key that stands in no file.
func inForm(p *config.Error) *config.Error {
	shown := *p
	if place, _, _ := strings.Cut(p.Place, ":"); strings.HasPrefix(place, "console") && !strings.HasSuffix(place, ".yaml") {
		shown.Place = ""
	}
	return &shown
}

// byOrSelf names who did something, or the server itself.
func byOrSelf(p account.Person) string { return cmp.Or(p.Name, "server") }

// timeouts of a change.
const (
	testTime  = 30 * time.Second // all services together
	applyTime = 30 * time.Second
)
