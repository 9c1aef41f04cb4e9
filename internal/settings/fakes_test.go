package settings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/store"
)

// records keep revisions as the store does.
type records struct {
	mu   sync.Mutex
	all  []store.SettingsRevision
	gone int // the oldest ones that are dropped
}

func (r *records) Active(context.Context) (store.SettingsRevision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return store.SettingsRevision{}, store.ErrNotFound
	}
	return r.all[len(r.all)-1], nil
}

func (r *records) Get(_ context.Context, id int) (store.SettingsRevision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id <= r.gone || id > len(r.all) {
		return store.SettingsRevision{}, store.ErrNotFound
	}
	return r.all[id-1], nil
}

func (r *records) List(_ context.Context, before, limit int) ([]store.SettingsRevision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.all)
	if before > 0 {
		all = all[:min(before-1, len(all))]
	}
	all = all[min(r.gone, len(all)):]
	slices.Reverse(all)
	return all[:min(limit, len(all))], nil
}

func (r *records) Save(_ context.Context, s store.SettingsRevision, why string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.BaseID != len(r.all) {
		return 0, store.ErrConflict
	}
	if len(r.all) > 0 {
		r.all[len(r.all)-1].State = store.SettingsPast
		if why != "" {
			r.all[len(r.all)-1].State, r.all[len(r.all)-1].WhyUndone = store.SettingsUndone, why
		}
	}
	s.ID, s.At, s.State = len(r.all)+1, time.Now(), store.SettingsActive
	r.all = append(r.all, s)
	return s.ID, nil
}

// machine is a server in a test.
type machine struct {
	mu     sync.Mutex
	health Health
	inUse  *config.Config
	stages int // that were made and not ended
	fail   error
	apply  error
	tests  []Test
}

func (m *machine) Build(_ context.Context, next *config.Config) (Stage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	m.stages++
	return &stage{m, next}, nil
}

func (m *machine) Health() Health {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.health
}

func (m *machine) open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stages
}

// does has the server do better or worse.
func (m *machine) does(f func(h *Health)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.health)
}

// fails has no server be built from now on.
func (m *machine) fails(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

type stage struct {
	m    *machine
	next *config.Config
}

func (s *stage) Tests(context.Context) []Test { return s.m.tests }

func (s *stage) Apply(context.Context) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.stages--
	if s.m.apply != nil {
		return s.m.apply
	}
	s.m.inUse = s.next
	return nil
}

func (s *stage) Drop() {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.stages--
}

// vault keeps secrets with where they may go.
type vault struct {
	mu  sync.Mutex
	all map[string]struct {
		use   config.SecretUse
		value string
	}
}

func (v *vault) Seal(_ context.Context, _ account.Person, name string, use config.SecretUse, value string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[string]struct {
			use   config.SecretUse
			value string
		}{}
	}
	v.all[name] = struct {
		use   config.SecretUse
		value string
	}{use, value}
	return nil
}

func (v *vault) Open(context.Context) func(name string, use config.SecretUse) (string, error) {
	return func(name string, use config.SecretUse) (string, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		kept, ok := v.all[name]
		switch {
		case !ok:
			return "", errors.New("no secret is known by that name")
		case kept.use != use:
			return "", errors.New("it was entered for " + kept.use.At)
		}
		return kept.value, nil
	}
}

func (v *vault) Names(context.Context) (all []string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.all {
		all = append(all, name)
	}
	return all, nil
}

func (v *vault) Drop(_ context.Context, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.all, name)
	return nil
}

// bench is a server whose settings a test changes.
type bench struct {
	*Settings

	t       *testing.T
	machine *machine
	records *records
	vault   *vault
	sources *config.Sources
}

// start starts a server with files: config.yaml and that of the data folder.
func start(t *testing.T, file, own string, environ ...string) *bench {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"base.yaml": file, "config.yaml": own} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, machine: &machine{health: Health{Ready: true}}, records: &records{}, vault: &vault{}}
	b.sources = config.Read(config.Options{File: filepath.Join(dir, "base.yaml"), DataDir: dir, Env: environ})
	b.restart(b.sources, false)
	return b
}

// restart starts the server again, maybe with other files or without what people have set.
func (b *bench) restart(sources *config.Sources, without bool) {
	b.t.Helper()
	if b.Settings != nil {
		b.Close()
	}
	var err error
	b.Settings, _, err = Open(b.t.Context(), Options{Sources: sources, Records: b.records, Vault: b.vault, Without: without})
	if err != nil {
		b.t.Fatal(err)
	}
	b.machine.inUse = b.Current()
	b.Run(b.machine)
	b.t.Cleanup(b.end)
}

func (b *bench) end() {
	b.t.Helper()
	if b.Settings == nil {
		return
	}
	b.Close()
	if n := b.machine.open(); n != 0 {
		b.t.Errorf("%d servers were built and neither used nor thrown away", n)
	}
	b.Settings = nil
}

func anna() account.Person {
	return account.Person{Name: "anna", Role: account.Owner, Proved: time.Now()}
}

func bert() account.Person {
	return account.Person{Name: "bert", Role: account.Owner, Proved: time.Now()}
}

// set is an edit of a key written with dots.
func set(key string, value any) Edit { return Edit{Path: pathOf(key), Value: value} }

// change plans and applies.
func (b *bench) change(by account.Person, base int, edits ...Edit) Revision {
	b.t.Helper()
	p, err := b.Plan(b.t.Context(), by, base, edits)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.Apply(b.t.Context(), by, p.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}
