package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// Mode says how much is remembered for an owner.
type Mode int

// The modes.
const (
	Whole   Mode = iota // facts and the summary
	Summed              // the summary alone
	Nothing             // nothing outlasts a talk
)

// Options of a [Book]. Store and NewID must be set.
type Options struct {
	Store Store
	NewID func() string
	Mode  func(Owner) Mode           // nil: [Whole]
	Model func(Owner) providers.LLM  // that reads talks; nil, or one that returns nil: rules do
	Zone  func(Owner) *time.Location // in which days are told; nil: the machine's
	// Embedder makes vectors, by which facts are found by their meaning, and Vectors keeps them; nil, or an Embedder that returns nil:
	// facts are found by their words alone.
	Embedder func() providers.Embedder
	Vectors  Vectors
	// Find returns the ids of facts that have to do with words, the best first, in place of vectors, where a service finds facts by
	// itself; nil: none does.
	Find func(ctx context.Context, o Owner, words string) ([]string, error)
	// Warm gets Find ready for a question that will soon come; nil: nothing is to be done.
	Warm func(context.Context) error
	// Fresh has the store know what the service knows now; nil: it always does.
	Fresh func(ctx context.Context, o Owner) error
	// Elsewhere says that a service finds out by itself what is told in talks: they are read for the summary alone.
	Elsewhere bool
	Over      time.Duration               // after its last turn a talk is over, and read; 0: ten minutes
	Flush     func(context.Context) error // has the store write what was said; nil: it waits for nothing
	Erased    func()                      // is told that talks were deleted; it must not wait. nil: nobody is
	Changed   func(device string)         // is told that other things are known; it must not wait. nil: nobody is
	Log       *slog.Logger                // nil: nothing is logged
}

// Book owns what is remembered. Its methods may be called at the same time.
type Book struct {
	o    Options
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup
	wake chan struct{} // size 1: there may be something to learn

	meaning *meaning
	asker   *asker

	mu       sync.Mutex
	profiles map[Owner]*Profile // in use
	now      map[string]bool    // talks that are to be read before they are over
}

// New makes a book; Start has it learn, Close ends it.
func New(ctx context.Context, o Options) *Book {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Mode == nil {
		o.Mode = func(Owner) Mode { return Whole }
	}
	if o.Model == nil {
		o.Model = func(Owner) providers.LLM { return nil }
	}
	if o.Zone == nil {
		o.Zone = func(Owner) *time.Location { return time.Local }
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	if o.Over == 0 {
		o.Over = 10 * time.Minute
	}
	ctx, stop := context.WithCancel(ctx)
	b := &Book{o: o, ctx: ctx, stop: stop, wake: make(chan struct{}, 1), profiles: map[Owner]*Profile{}, now: map[string]bool{}}
	b.meaning = newMeaning(b, o.Embedder, o.Vectors)
	b.asker = newAsker(b, func() bool { return b.meaning.embedder() != nil }, b.meaning.find)
	if o.Find != nil {
		b.asker = newAsker(b, func() bool { return true }, b.byService)
	}
	return b
}

// byService has the service find facts.
func (b *Book) byService(ctx context.Context, o Owner, words string) (found []near, err error) {
	ids, err := b.o.Find(ctx, o, words)
	for _, id := range ids {
		found = append(found, near{id, surely})
	}
	return found, err
}

// Start has goroutines read talks that are over, and make vectors of facts. It is called once.
func (b *Book) Start() {
	b.wg.Go(newLearner(b).run)
	b.wg.Go(b.meaning.run)
}

// EmbedderChanged says that something else makes vectors from now on, or nothing. It does not wait.
func (b *Book) EmbedderChanged() { b.meaning.changed() }

// Warm gets what makes vectors ready for a question that will soon come.
func (b *Book) Warm(ctx context.Context) error {
	if b.o.Warm != nil {
		return b.o.Warm(ctx)
	}
	if w, ok := b.meaning.embedder().(providers.Warmer); ok {
		return w.Warm(ctx)
	}
	return nil
}

// Close ends what the book does, and waits for it. No profile may be opened any more.
func (b *Book) Close() {
	b.stop()
	b.wg.Wait()
}

// Mode is how much is remembered for an owner.
func (b *Book) Mode(o Owner) Mode { return b.o.Mode(o) }

// Open implements [Engine].
func (b *Book) Open(o Owner) Recollection { return b.open(o) }

// open returns the profile of an owner, which is read meanwhile. Each is given back by leave.
func (b *Book) open(o Owner) *Profile {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.profiles[o]
	if p == nil {
		p = &Profile{book: b, owner: o, ready: make(chan struct{})}
		b.profiles[o] = p
		b.wg.Go(func() {
			defer close(p.ready)
			if err := b.read(b.ctx, p); err != nil && b.ctx.Err() == nil {
				b.o.Log.Warn("what is remembered cannot be read", "device_id", o.Device, "err", err)
			}
		})
	}
	p.users++
	return p
}

// leave gives a profile back.
func (b *Book) leave(p *Profile) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.users--; p.users == 0 && b.profiles[p.owner] == p {
		delete(b.profiles, p.owner)
	}
}

// Left says that a device has gone: its talk may be over soon. It does not wait.
func (b *Book) Left() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Overflows says that the oldest turns of a talk do not fit its history any more: it is read although it goes on. It does not wait.
func (b *Book) Overflows(talk string) {
	b.mu.Lock()
	if len(b.now) < maxUrgent {
		b.now[talk] = true
	}
	b.mu.Unlock()
	b.Left()
}

const (
	maxUrgent = 256
	readTime  = 10 * time.Second // for the store
)

func (b *Book) read(ctx context.Context, p *Profile) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	k, err := b.o.Store.Load(ctx, p.owner)
	if err == nil {
		p.set(k)
	}
	return err
}

// refresh has conversations know what the store knows now.
func (b *Book) refresh(ctx context.Context, o Owner) {
	b.mu.Lock()
	var open []*Profile
	for of, p := range b.profiles {
		if of == o || o.Agent == "" && of.Device == o.Device {
			open = append(open, p)
		}
	}
	b.mu.Unlock()
	owners := []Owner{o}
	for _, p := range open {
		owners = append(owners, p.owner)
		if err := b.read(ctx, p); err != nil {
			p.set(Known{}) // rather nothing than what was forgotten
			b.o.Log.Warn("what is remembered cannot be read", "device_id", o.Device, "err", err)
		}
	}
	b.meaning.changed(owners...)
	b.o.Changed(o.Device)
}

// ErrEmpty says that a text to be remembered has no words.
var ErrEmpty = errors.New("there is nothing to remember")

// Remember keeps what somebody asks for, as it is said. What is known already is not kept twice: the fact is that one then.
func (b *Book) Remember(ctx context.Context, f Fact) (kept Fact, known bool, err error) {
	f.Text = oneLine(f.Text, MaxText)
	if len(terms(f.Text)) == 0 {
		return Fact{}, false, ErrEmpty
	}
	if told := statements(f.Text); len(told) == 1 { // it says it of a third person
		f.Text, f.Slot, f.Keys = told[0].text, told[0].slot, told[0].keys
	}
	p := b.open(f.Owner)
	defer b.leave(p)
	k, err := p.Known(ctx)
	if err != nil {
		return Fact{}, false, err
	}
	for _, other := range k.Facts {
		if sameText(other.Text, f.Text) {
			return other, true, b.o.Store.Write(ctx, Change{Owner: f.Owner, Renew: []string{other.ID}})
		}
	}
	f.ID, f.At, f.Told, f.Sure = b.o.NewID(), time.Now(), true, 100
	c := Change{Owner: f.Owner, Add: []Fact{f}, Replace: replaced(k.Facts, f)}
	if err := b.o.Store.Write(ctx, c); err != nil {
		return Fact{}, false, fmt.Errorf("keep what is to be remembered: %w", err)
	}
	b.refresh(ctx, f.Owner)
	return c.Add[0], false, nil
}

// Edit puts another text into the place of that of a fact.
func (b *Book) Edit(ctx context.Context, o Owner, id, words string) error {
	words = oneLine(words, MaxText)
	if len(terms(words)) == 0 {
		return ErrEmpty
	}
	defer b.refresh(ctx, o)
	if err := b.leaveOut(ctx, o, id); err != nil {
		return err
	}
	return b.o.Store.Edit(ctx, o, id, words)
}

// Forget deletes facts for good, and what the summary says of them.
func (b *Book) Forget(ctx context.Context, o Owner, ids ...string) error {
	defer b.refresh(ctx, o)
	if err := b.leaveOut(ctx, o, ids...); err != nil {
		return err
	}
	return b.o.Store.Forget(ctx, o, ids)
}

// leaveOut takes what tells facts out of the summary.
func (b *Book) leaveOut(ctx context.Context, o Owner, ids ...string) error {
	k, err := b.o.Store.Load(ctx, o)
	if err != nil || k.Summary.Text == "" {
		return err
	}
	var told []string
	for _, f := range k.Facts {
		if slices.Contains(ids, f.ID) {
			told = append(told, f.Text)
		}
	}
	rest := leftOf(k.Summary.Text, func(sentence string) bool {
		return slices.ContainsFunc(told, func(fact string) bool { return Tells(sentence, fact) })
	})
	if rest != k.Summary.Text {
		return b.o.Store.Write(ctx, Change{Owner: o, Summary: &Summary{rest, k.Summary.At}})
	}
	return nil
}

// ForgetAll deletes all that is known of an owner for good, and returns how many facts that were.
func (b *Book) ForgetAll(ctx context.Context, o Owner) (facts int, err error) {
	defer b.refresh(ctx, o)
	return b.o.Store.ForgetAll(ctx, o)
}

// Refresh says that the store was changed beside the book.
func (b *Book) Refresh(device string) { b.refresh(b.ctx, Owner{Device: device}) }

// All returns what is known of an owner, as who keeps it says now.
func (b *Book) All(ctx context.Context, o Owner) (Known, error) {
	if b.o.Fresh != nil {
		if err := b.o.Fresh(ctx, o); err != nil {
			return Known{}, err
		}
	}
	return b.o.Store.Load(ctx, o)
}

// Reread says that the store knows other facts of an owner.
func (b *Book) Reread(o Owner) { b.refresh(b.ctx, o) }

// replaced returns the facts whose place another one takes, with its id.
func replaced(known []Fact, by Fact) map[string]string {
	ended := map[string]string{}
	for _, f := range known {
		if by.Slot != "" && f.Slot == by.Slot && f.Person == by.Person {
			ended[f.ID] = by.ID
		}
	}
	return ended
}

// Erased says that a talk was deleted: what was learned from it goes with it. It does not wait.
func (b *Book) Erased(device string) {
	b.wg.Go(func() {
		if b.o.Flush != nil {
			if err := b.o.Flush(b.ctx); err != nil {
				b.o.Log.Warn("a talk is not deleted yet", "device_id", device, "err", err)
			}
		}
		if b.o.Erased != nil {
			b.o.Erased()
		}
		b.Refresh(device)
	})
}

// oneLine makes a text that stands in one line of at most most bytes.
func oneLine(s string, most int) string { return text.Cut(strings.Join(strings.Fields(s), " "), most) }

// sameText reports whether two texts have the same words.
func sameText(a, b string) bool { return text.Bare(a) == text.Bare(b) }
