package routine

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	maxAll     = 200              // routines
	maxDevice  = 32               // that were set by voice on one device
	lookEach   = time.Minute      // the clock, which may be set, is looked at so often
	lookFiles  = 5 * time.Second  // the folder is looked at so often
	storeLimit = 10 * time.Second // for one piece of work on the store
	tokenSize  = 24               // bytes of a token
)

// Doer has devices do what a routine is for. Its methods may be called at the same time.
type Doer interface {
	// Do does it. What it has devices say is kept, with the run's key, when it returns; a tool has run. It ends with ctx.
	Do(ctx context.Context, r Routine, run Run) error
}

// Options configure a [Book]. Doer must be set.
type Options struct {
	Store    Store // nil: [Nowhere]
	Doer     Doer
	Folder   string                                     // of files; "": there are none
	Variable func(name string) (value string, set bool) // of the environment, for tokens in files; nil: none is set
	Zone     func(to string) *time.Location             // of the device that an address names, or of the server
	NewID    func() string
	Waits    func()       // is told that routines wait for other resources, from any goroutine; nil: nobody is
	Log      *slog.Logger // nil: discarded
}

// Book owns all routines, and begins them.
//
// What devices are to say is kept for each before the next time of its routine is, under a key by which no device gets it twice: a
// program that is killed between the two says it once. A tool runs once at most: its next time is kept first.
//
// # Concurrency
//
// All methods may be called at any time. One goroutine waits for times and looks at files; each run has one of its own.
type Book struct {
	o    Options
	life func(limit time.Duration) (context.Context, context.CancelFunc) // for one piece of work
	work sync.WaitGroup
	wake chan struct{} // size 1: something is due at another time
	done chan struct{} // closed: the book is

	change sync.Mutex // held while the store and what is known change together
	folder folder     // guarded by change

	mu     sync.Mutex
	closed bool
	all    map[string]*entry
	house  *rate.Limiter // of all that events begin
	busy   int           // runs that go on
	depths depths
}

// entry is a routine with what is known of it while the program runs.
type entry struct {
	Routine
	limit   *rate.Limiter // of what events begin
	running bool          // at a time; events do not wait for one another
	warned  time.Time     // that it came too often
}

// New makes a book. What it does by itself has the values of ctx, and ends with Close.
func New(ctx context.Context, o Options) *Book {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Store == nil {
		o.Store = Nowhere{}
	}
	if o.Zone == nil {
		o.Zone = func(string) *time.Location { return time.UTC }
	}
	if o.Waits == nil {
		o.Waits = func() {}
	}
	ctx = context.WithoutCancel(ctx)
	life, end := context.WithCancel(ctx)
	b := &Book{
		o: o, wake: make(chan struct{}, 1), done: make(chan struct{}), all: map[string]*entry{}, house: rate.NewLimiter(perHour(houseLimit), houseBurst),
		life: func(limit time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeout(life, limit)
		},
	}
	b.folder = folder{dir: o.Folder, variable: o.Variable, log: o.Log}
	b.work.Go(func() { // ends the runs
		defer end()
		<-b.done
	})
	return b
}

// Start takes up what an earlier run of the program has left, and begins to wait for times. What came due meanwhile is done
// once, if it is not too late.
func (b *Book) Start(ctx context.Context) error {
	all, err := b.o.Store.Load(ctx)
	if err != nil {
		return err
	}
	b.change.Lock()
	kept := map[string]State{}
	b.mu.Lock()
	for _, r := range all {
		if r.Source == ByFile {
			kept[r.ID] = r.State
			continue
		}
		b.all[r.ID] = newEntry(r)
	}
	b.mu.Unlock()
	b.folder.kept = kept
	b.read(ctx)
	b.change.Unlock()
	b.o.Waits()
	b.work.Go(b.loop)
	return nil
}

// Close ends the waiting, and the runs, and waits for them.
func (b *Book) Close() {
	b.mu.Lock()
	was := b.closed
	b.closed = true
	b.mu.Unlock()
	if !was {
		close(b.done)
	}
	b.work.Wait()
}

func newEntry(r Routine) *entry {
	limit := cmp.Or(r.Limit, usualLimit)
	return &entry{Routine: r, limit: rate.NewLimiter(perHour(limit), min(limit, burst))}
}

// perHour is the rate of a limiter.
func perHour(n int) rate.Limit { return rate.Every(time.Hour / time.Duration(n)) }

// loop waits for times, and for other files.
func (b *Book) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-b.done:
			return
		case <-b.wake:
		case <-timer.C:
		}
		if b.folder.dir != "" {
			b.look()
		}
		timer.Reset(b.due(time.Now()))
	}
}

// look reads the folder again.
func (b *Book) look() {
	ctx, stop := b.life(storeLimit)
	defer stop()
	b.change.Lock()
	changed := b.read(ctx)
	b.change.Unlock()
	if changed {
		b.o.Waits()
	}
}

// read makes the routines of the files what they are now. The caller holds change.
func (b *Book) read(ctx context.Context) (changed bool) {
	if !b.folder.read() {
		return false
	}
	found := b.folder.routines()
	b.mu.Lock()
	for id, e := range b.all {
		if e.Source == ByFile {
			if _, still := found[id]; !still {
				delete(b.all, id)
			}
			b.folder.kept[id] = e.State
		}
	}
	b.mu.Unlock()
	for _, id := range sorted(found) {
		r := found[id]
		var err error
		if r.State, err = r.schedule(b.folder.kept[id], b.zone(&r), time.Now(), true); err != nil {
			b.folder.wrong(r.File, id, err)
			continue
		}
		if taken := b.set(r); !taken && r.State != b.folder.kept[id] {
			b.put(ctx, r)
		}
	}
	b.rouse()
	return true
}

// zone is the one in which the times of a routine count.
func (b *Book) zone(r *Routine) *time.Location {
	return cmp.Or(b.o.Zone(cmp.Or(r.Device, r.To)), time.UTC)
}

// rouse has the loop look again.
func (b *Book) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// put keeps a routine, and says so in the log if that fails.
func (b *Book) put(ctx context.Context, r Routine) bool {
	err := b.o.Store.Put(ctx, r)
	if err != nil {
		b.o.Log.Error("a routine is not kept", "routine", r.ID, "err", err)
	}
	return err == nil
}

// Add keeps a new routine. Of r its definition, its source and who has made it count. token is that of its hook, which is not
// shown again; "": it has none. Errors are a [*Mistake], [ErrMany], and those of the store.
func (b *Book) Add(ctx context.Context, r Routine) (made Routine, token string, err error) {
	if err = r.check(); err != nil {
		return Routine{}, "", err
	}
	r.ID, r.Made, r.State = b.o.NewID(), time.Now().Truncate(time.Millisecond), State{}
	if r.State, err = r.schedule(State{}, b.zone(&r), time.Now(), false); err != nil {
		return Routine{}, "", err
	}
	if r.On != nil && r.On.Hook {
		secret := make([]byte, tokenSize)
		_, _ = rand.Read(secret) // it does not fail
		token = base64.RawURLEncoding.EncodeToString(secret)
		r.Hash = hashOf(token)
	}
	b.change.Lock()
	defer b.change.Unlock()
	b.mu.Lock()
	own := 0
	for _, e := range b.all {
		if r.Source == ByVoice && e.Device == r.Device {
			own++
		}
	}
	full := len(b.all) >= maxAll || own >= maxDevice
	b.mu.Unlock()
	if full {
		return Routine{}, "", ErrMany
	}
	if err := b.o.Store.Put(ctx, r); err != nil {
		return Routine{}, "", err
	}
	b.set(r)
	b.rouse()
	b.o.Waits()
	return r, token, nil
}

// set makes a routine known, unless one from elsewhere has its ID, and reports that. One that is known already goes on as it is
// where its times are the same.
func (b *Book) set(r Routine) (taken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := newEntry(r)
	if old := b.all[r.ID]; old != nil {
		if taken = (old.Source == ByFile) != (r.Source == ByFile); taken {
			return true
		}
		if e.running = old.running; old.Plan == r.Plan {
			e.State = old.State
		}
	}
	b.all[r.ID] = e
	return false
}

// Replace puts another definition in the place of that of a routine, which keeps its token. Errors are those of Add, [ErrNone]
// and [ErrFile].
func (b *Book) Replace(ctx context.Context, id string, d Definition) (Routine, error) {
	if err := d.check(); err != nil {
		return Routine{}, err
	}
	b.change.Lock()
	defer b.change.Unlock()
	r, err := b.own(id)
	if err != nil {
		return Routine{}, err
	}
	if hook := d.On != nil && d.On.Hook; hook != (r.Hash != "") {
		return Routine{}, wrong("on.hook", "routine/hook")
	}
	r.Definition = d
	if r.State, err = r.schedule(r.State, b.zone(&r), time.Now(), false); err != nil {
		return Routine{}, err
	}
	if err := b.o.Store.Put(ctx, r); err != nil {
		return Routine{}, err
	}
	b.set(r)
	b.rouse()
	b.o.Waits()
	return r, nil
}

// Delete ends a routine for good. Errors are [ErrNone], [ErrFile], and those of the store.
func (b *Book) Delete(ctx context.Context, id string) error {
	b.change.Lock()
	defer b.change.Unlock()
	if _, err := b.own(id); err != nil {
		return err
	}
	return b.drop(ctx, id)
}

// drop forgets a routine. The caller holds change.
func (b *Book) drop(ctx context.Context, id string) error {
	if err := b.o.Store.Delete(ctx, id); err != nil {
		return err
	}
	b.mu.Lock()
	delete(b.all, id)
	b.mu.Unlock()
	b.o.Waits()
	return nil
}

// own returns a routine that is no file's.
func (b *Book) own(id string) (Routine, error) {
	r, err := b.Find(id)
	if err == nil && r.Source == ByFile {
		err = ErrFile
	}
	return r, err
}

// Forget drops the routines of a device that is forgotten.
func (b *Book) Forget(ctx context.Context, device string) error {
	b.change.Lock()
	defer b.change.Unlock()
	for _, r := range b.List() {
		if r.Source == ByVoice && r.Device == device {
			if err := b.drop(ctx, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find returns a routine, or [ErrNone].
func (b *Book) Find(id string) (Routine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.all[id]; e != nil {
		return e.Routine, nil
	}
	return Routine{}, ErrNone
}

// List lists all routines: those that are due first, the first due first; then by name.
func (b *Book) List() []Routine {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Routine, 0, len(b.all))
	for _, e := range b.all {
		all = append(all, e.Routine)
	}
	slices.SortFunc(all, func(x, y Routine) int {
		if x.Due.IsZero() != y.Due.IsZero() {
			if x.Due.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(x.Due.Compare(y.Due), strings.Compare(x.Name, y.Name), strings.Compare(x.ID, y.ID))
	})
	return all
}

// Problems lists what is wrong with files, in English and Chinese, by file.
func (b *Book) Problems() []Problem {
	b.change.Lock()
	defer b.change.Unlock()
	return slices.Clone(b.folder.problems)
}

// hashOf is a token as it is kept.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Resources lists the resources that routines wait for, by the name of their server.
func (b *Book) Resources() map[string][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string][]string{}
	for _, e := range b.all {
		if e.On != nil && e.On.Resource != "" && !e.Disabled && !slices.Contains(all[e.On.Server], e.On.Resource) {
			all[e.On.Server] = append(all[e.On.Server], e.On.Resource)
		}
	}
	return all
}
