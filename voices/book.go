package voices

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"xiaozhi/providers"
)

// Options of a [Book]. Store, NewID, Engine and Service must be set.
type Options struct {
	Store  Store
	NewID  func() string
	Engine func() providers.Voiceprint // that counts now; nil: none does
	// Service makes the one of a section of the settings, also where another one counts now, or none. free lets go of it.
	Service func(ctx context.Context, name string) (v providers.Voiceprint, free func(), err error)
	Shared  bool         // other servers may change people too
	Log     *slog.Logger // nil: nothing is logged
}

// Book owns what is known of people and their voices. Its methods may be called at the same time.
type Book struct {
	o      Options
	now    atomic.Pointer[household]
	places chan struct{}
	wake   chan struct{} // size 1: something is to be forgotten
	wg     sync.WaitGroup
	stop   context.CancelFunc

	reading sync.Mutex // of reading the store, so that the newest stays

	following sync.Mutex
	followers []*func()
}

// household holds all that is known at a time. It does not change.
type household struct {
	Kept
	byID map[string]Person
}

func (h *household) person(id string) (Person, bool) {
	p, ok := h.byID[id]
	return p, ok
}

// Open reads what is known, and begins to look after it until Close.
func Open(ctx context.Context, o Options) (*Book, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(ctx)
	b := &Book{o: o, places: make(chan struct{}, places), wake: make(chan struct{}, 1), stop: stop}
	b.now.Store(&household{})
	if err := b.reload(ctx); err != nil {
		stop()
		return nil, err
	}
	b.wg.Go(func() { b.run(ctx) })
	return b, nil
}

// Close ends what the book does, and waits for it.
func (b *Book) Close() {
	b.stop()
	b.wg.Wait()
}

// reload reads what the store knows now.
func (b *Book) reload(ctx context.Context) error {
	b.reading.Lock()
	defer b.reading.Unlock()
	k, err := b.o.Store.Load(ctx)
	if err != nil {
		return err
	}
	h := &household{Kept: k, byID: map[string]Person{}}
	for _, p := range k.People {
		h.byID[p.ID] = p
	}
	b.now.Store(h)
	b.following.Lock()
	defer b.following.Unlock()
	for _, told := range b.followers {
		(*told)()
	}
	return nil
}

// Follow has told called when other people or voices are known, until stop is called. told must not wait.
func (b *Book) Follow(told func()) (stop func()) {
	b.following.Lock()
	defer b.following.Unlock()
	b.followers = append(b.followers, &told)
	return func() {
		b.following.Lock()
		defer b.following.Unlock()
		b.followers = slices.DeleteFunc(b.followers, func(f *func()) bool { return f == &told })
	}
}

// People lists all, by name.
func (b *Book) People() []Person { return slices.Clone(b.now.Load().People) }

// Person returns the one of an id.
func (b *Book) Person(id string) (Person, bool) { return b.now.Load().person(id) }

// Named returns the one of a name, whatever its letters.
func (b *Book) Named(name string) (Person, bool) {
	for _, p := range b.now.Load().People {
		if strings.EqualFold(p.Name, strings.Join(strings.Fields(name), " ")) {
			return p, true
		}
	}
	return Person{}, false
}

// Voices lists those of a person, the oldest first. stale: it is of no use to the engine that counts now.
func (b *Book) Voices(person string) (all []Voice, stale map[string]bool) {
	stale = map[string]bool{}
	var of []providers.Print
	if e := b.o.Engine(); e != nil {
		of = b.printsFor(e)
	}
	for _, v := range b.now.Load().Voices {
		if v.Print.Person == person {
			all = append(all, v)
			stale[v.Print.ID] = !slices.ContainsFunc(of, func(p providers.Print) bool { return p.ID == v.Print.ID })
		}
	}
	return all, stale
}

// Removals lists the prints that services are still to forget, of those that they were asked to.
func (b *Book) Removals() (all []Removal) {
	for _, r := range b.now.Load().Removals {
		if r.Tries > 0 {
			all = append(all, r)
		}
	}
	return all
}

// Engine names what tells people apart now; "": nothing does.
func (b *Book) Engine() string {
	if e := b.o.Engine(); e != nil {
		return e.Name()
	}
	return ""
}

// CleanName returns a name in its one form, or [ErrName]. Models are told it among their instructions: it has nothing in it but what names have.
func CleanName(name string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	strange := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !strings.ContainsRune(" -'’.·・", r)
	}
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxName || strings.ContainsFunc(name, strange) || !strings.ContainsFunc(name, unicode.IsLetter) {
		return "", ErrName
	}
	return name, nil
}

// Add adds a person. The error is [ErrName], [ErrTaken] or [ErrFull].
func (b *Book) Add(ctx context.Context, name, account, by string) (p Person, err error) {
	if name, err = CleanName(name); err != nil {
		return p, err
	}
	if len(b.now.Load().People) >= MaxPeople {
		return p, ErrFull
	}
	p = Person{ID: b.o.NewID(), Name: name, Account: account, By: by, At: time.Now()}
	if err := b.o.Store.Add(ctx, p); err != nil {
		return p, err
	}
	return p, b.reload(ctx)
}

// Edit changes name and account of a person. The error is [ErrName], [ErrTaken] or [ErrNobody].
func (b *Book) Edit(ctx context.Context, id, name, account string) error {
	name, err := CleanName(name)
	if err != nil {
		return err
	}
	if err := b.o.Store.Edit(ctx, Person{ID: id, Name: name, Account: account}); err != nil {
		return err
	}
	return b.reload(ctx)
}

// Delete deletes a person with their voices, here and at services, and with memories also what is remembered of them. left
// says that a service has not forgotten a voice yet; it is asked again.
func (b *Book) Delete(ctx context.Context, id string, memories bool) (left bool, err error) {
	if err := b.o.Store.Delete(ctx, id, memories); err != nil {
		return false, err
	}
	return b.forget(ctx)
}

// DeleteVoice deletes a voice of a person. left is as that of [Book.Delete].
func (b *Book) DeleteVoice(ctx context.Context, person, id string) (left bool, err error) {
	if err := b.o.Store.DeleteVoice(ctx, person, id); err != nil {
		return false, err
	}
	return b.forget(ctx)
}
