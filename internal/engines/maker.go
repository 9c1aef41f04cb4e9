package engines

import (
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"xiaozhi/internal/config"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Maker owns the engines there are. Each is made once for the settings that it has, whichever sets have it, and is let go
// of with the last of them. Its methods may be called at the same time.
type Maker struct {
	log   *slog.Logger
	kinds []service.Kind

	mu   sync.Mutex // of making, one set at a time
	made map[string][]*made
	last int // id that was given last
}

// New makes none yet.
func New(log *slog.Logger) *Maker {
	return &Maker{log: log, kinds: catalog.Kinds(), made: map[string][]*made{}}
}

// made is an engine, a chain, or what makes connections to a service; or why it could not be made.
type made struct {
	id      int
	name    string // of an engine
	section config.Provider
	what    any
	about   string // of an engine, for people
	err     error
	breaker chain.Breaker // of an engine, in all chains
	needs   []*made       // what it uses
	users   int           // sets, and engines that use it
}

// batch makes the engines of one set, and holds them. It is for one goroutine.
type batch struct {
	*Maker
	cfg    *config.Config
	report *Report
	start  *Start
	brain  *rules.Brain
	retry  func(key string) bool // whether what could not be made is tried again
	held   map[string]*made      // by role and name
	making *made                 // nil: nothing
	told   map[string]bool
}

func (f *Maker) batch(cfg *config.Config, found *Report) *batch {
	return &batch{
		Maker: f, cfg: cfg, report: found, start: &Start{log: f.log}, retry: func(string) bool { return false },
		held: map[string]*made{}, told: map[string]bool{},
	}
}

// once makes what a key and a section stand for, or returns what was made before. again says that this batch has it already.
func once[T any](f *batch, key, section string, make func(m *made) (T, error)) (what T, again bool, err error) {
	m, again := f.held[key]
	if !again {
		m = f.find(key, section)
	}
	if m == nil {
		f.last++
		m = &made{id: f.last, section: f.essence(section)}
		outer := f.making
		f.making = m
		what, err = make(m)
		f.making = outer
		if m.err = err; err == nil {
			m.what = what
		}
		f.made[key] = append(f.made[key], m)
	}
	if !again {
		f.held[key] = m
		m.users++
	}
	what, _ = m.what.(T)
	return what, again, m.err
}

// find returns what there is of a key with the section as it is now; nil: nothing, or it is to be tried again.
func (f *batch) find(key, section string) *made {
	now := f.essence(section)
	for _, m := range slices.Backward(f.made[key]) {
		if reflect.DeepEqual(m.section, now) && (m.err == nil || !f.retry(key)) {
			return m
		}
	}
	return nil
}

// essence returns a section without what is for people and for chains. Names without a section have none.
func (f *batch) essence(name string) config.Provider {
	p := f.cfg.Providers[name]
	if p.Place, p.Price = "", (config.Price{}); f.cfg.Typed(name) {
		p.Place = "console" // its connections are others
	}
	p.FirstToken, p.FirstSound, p.Transcript = 0, 0, 0
	return p
}

// client returns the HTTP client that the roles of a section share. What is being made uses it.
func (f *batch) client(name string, p config.Provider) (*http.Client, error) {
	key := "HTTP " + name
	c, _, err := once(f, key, name, func(*made) (*http.Client, error) {
		return transport.NewHTTPClient(transport.HTTPOptions{Proxy: p.Proxy, Careful: f.cfg.Typed(name)})
	})
	if m := f.held[key]; f.making != nil && !slices.Contains(f.making.needs, m) {
		f.making.needs = append(f.making.needs, m)
		m.users++
	}
	return c, err
}

// release lets go of all that the batch holds.
func (f *batch) release() {
	for _, m := range f.held {
		f.leave(m)
	}
	f.held = nil
}

// leave says that one uses it less. What nobody has any more ends as soon as the turns that still use it have done with it.
func (f *Maker) leave(m *made) {
	if m.users--; m.users > 0 {
		return
	}
	for key, all := range f.made {
		if i := slices.Index(all, m); i >= 0 {
			if f.made[key] = slices.Delete(all, i, i+1); len(f.made[key]) == 0 {
				delete(f.made, key)
			}
			break
		}
	}
	m.retire()
	for _, other := range m.needs {
		f.leave(other)
	}
}

// Close closes all that there is. Nobody may use it any more.
func (f *Maker) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.made {
		for _, m := range all {
			m.close()
		}
	}
	f.made = map[string][]*made{}
}

// Start returns what is to be done before the engines that were made for the set are used for the first time.
func (e *Set) Start() *Start { return e.held.start }

// Release lets go of the set: the engines that no other one has end when the last turn has left them. A second call, and
// one of the zero Set, does nothing.
func (e *Set) Release() {
	if e.held == nil {
		return
	}
	f := e.held.Maker
	f.mu.Lock()
	defer f.mu.Unlock()
	e.held.release()
}

// close ends what was made, if it has an end.
func (m *made) close() {
	switch what := m.what.(type) {
	case interface{ Close() error }:
		what.Close()
	case *http.Client:
		transport.Retire(what)
	}
}

// retire ends what was made as soon as nobody uses it, if it has an end.
func (m *made) retire() {
	switch what := m.what.(type) {
	case interface{ Retire() }:
		what.Retire()
	case *http.Client:
		transport.Retire(what)
	}
}
