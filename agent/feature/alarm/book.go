package alarm

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/internal/wire"
)

const (
	lookAgain  = time.Minute      // the clock, which may be set, is looked at so often while a reminder waits
	retryAfter = time.Second      // until what has failed is tried again
	clockSet   = time.Second      // by so much a clock was set, and has not just drifted
	atOnce     = 64               // reminders that are read at once
	keepOver   = 24 * time.Hour   // how long a reminder is known that is over
	purgeEvery = time.Hour        // how often those are looked for that are not any more
	rangLately = 30 * time.Minute // what rang so long ago can be put off
	tellAgain  = time.Hour        // until what no voice could speak is tried again while its device stays
	storeLimit = 10 * time.Second // for one piece of work on the store
)

// Options configure a [Book]. The zero value works.
type Options struct {
	Store    Store         // nil: they are kept in memory
	Most     int           // open reminders of a device; 0: 32
	KeepOpen time.Duration // a reminder that is due so soon keeps its device's channel open; 0: 30 minutes
	// Owner returns the key under which a device's reminders are kept. known is false
	// for a stranger, who has none. nil: by Device-Id, and all are known.
	Owner func(s wire.Session) (key string, known bool)
	// CanBeWoken reports whether the device can be reached while it has no channel. nil: it cannot.
	CanBeWoken func(s wire.Session) bool
	// Up returns the time since any moment, by a clock that is never set and that goes
	// on while the machine sleeps; nil: the one that Go has, which may stand still then.
	Up  func() time.Duration
	Log *slog.Logger // nil: discarded
}

// Book keeps the reminders of all devices and has them rung: one timer for all. It
// is the [feature.Feature] of the conversations.
//
// What is due is committed as ringing before it is told. What is not connected then
// is told when it is. A goroutine runs only while there is something to do.
//
// # Concurrency
//
// All methods may be called at any time.
type Book struct {
	o       Options
	limits  atomic.Pointer[limits]
	queue   *queue       // of the book's own work on the store
	setting sync.RWMutex // held to read while a reminder is added, to write while timers are moved

	posts sync.WaitGroup // what is being posted to conversations
	looks lookout

	mu    sync.Mutex
	there map[string]*alarms // conversations by the key of their device

	clock     clock           // under setting
	unwritten map[string]bool // what rings although that could not be committed; this and purged are for the queue's work
	purged    time.Time
}

// New makes a book. What it does by itself has the values of ctx, and ends with Close.
func New(ctx context.Context, o Options) *Book {
	if o.Store == nil {
		o.Store = NewMemory()
	}
	if o.Up == nil {
		began := time.Now()
		o.Up = func() time.Duration { return time.Since(began) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Book{o: o, there: map[string]*alarms{}, unwritten: map[string]bool{}}
	b.SetLimits(o.Most, o.KeepOpen)
	b.looks.look = func() { b.queue.do(b.look) }
	b.queue = newQueue(ctx, storeLimit) // what was told is still committed when the program is asked to end
	b.clock.begin(o.Up)
	return b
}

// limits are those of [Options].
type limits struct {
	most     int
	keepOpen time.Duration
}

// SetLimits puts others in the place of Most and KeepOpen of the options. What is more already stays.
func (b *Book) SetLimits(most int, keepOpen time.Duration) {
	b.limits.Store(&limits{cmp.Or(most, 32), cmp.Or(keepOpen, 30*time.Minute)})
}

// Start takes up what an earlier run of the program has left in the store.
func (b *Book) Start() { b.queue.do(b.resume) }

// Forget deletes all reminders of a device.
func (b *Book) Forget(ctx context.Context, device string) error {
	return b.o.Store.Forget(ctx, device)
}

// Close commits what is left to commit and ends the book. No conversation may run any more.
func (b *Book) Close() {
	b.looks.stop()
	b.queue.close()
	b.posts.Wait()
}

// resume takes up what an earlier run of the program has left.
func (b *Book) resume(ctx context.Context) {
	ringing, err := b.o.Store.Find(ctx, Query{States: []State{Ringing}, Most: atOnce})
	var changes []Change
	for _, r := range ringing {
		next, _ := r.Next(Restarted, time.Now())
		changes = append(changes, Change{r, next})
	}
	if len(changes) > 0 {
		_, err = b.o.Store.Change(ctx, changes...)
	}
	if err != nil {
		b.o.Log.Error("reminders cannot be read", "err", err)
	}
	switch {
	case err != nil:
		b.again(b.resume)
	case len(ringing) == atOnce:
		b.queue.do(b.resume)
	default:
		b.looks.now()
	}
}

// look has all rung that is due, and sets the timer for the next.
func (b *Book) look(ctx context.Context) {
	b.looks.begun()
	wait, err := b.ring(ctx)
	if err != nil {
		b.o.Log.Error("reminders cannot be rung", "err", err)
		wait = retryAfter
	}
	if wait > 0 {
		b.looks.in(wait)
	}
}

// ring has all rung that is due, and returns how long to wait until the next look; 0:
// nothing waits.
func (b *Book) ring(ctx context.Context) (wait time.Duration, err error) {
	if err := b.followClock(ctx); err != nil {
		return 0, err
	}
	for {
		now, most := time.Now(), atOnce+len(b.unwritten)
		due, err := b.o.Store.Find(ctx, Query{States: waiting(), Before: now, Most: most})
		if err != nil {
			return 0, err
		}
		if err := b.come(ctx, due, now); err != nil {
			return 0, err
		}
		if len(due) < most {
			break
		}
	}
	if now := time.Now(); now.Sub(b.purged) >= purgeEvery {
		if err := b.o.Store.Purge(ctx, now.Add(-keepOver)); err != nil {
			return 0, err
		}
		b.purged = now
	}
	next, err := b.o.Store.Find(ctx, Query{States: waiting(), Most: 1 + len(b.unwritten)})
	for _, r := range next {
		if !b.unwritten[r.ID] {
			return min(max(time.Until(r.Due), time.Millisecond), lookAgain), err
		}
	}
	return 0, err
}

// come has those reminders rung whose time has come, and notes which were missed. Those
// that cannot be committed as ringing are rung all the same, once.
func (b *Book) come(ctx context.Context, due []Reminder, now time.Time) error {
	var changes []Change
	var bells []*bell // of the changes; nil: its device is not there
	for _, r := range due {
		if b.unwritten[r.ID] {
			continue
		}
		event, last, times := Absent, r, 1
		if b.conversation(r.Device) != nil {
			event = Came
			last, times = r.latest(now)
		}
		next, _ := last.Next(event, now)
		changes = append(changes, Change{r, next})
		if bells = append(bells, nil); event == Came {
			bells[len(bells)-1] = &bell{kept: next, telling: next, times: times}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	done, err := b.o.Store.Change(ctx, changes...)
	for i, o := range bells {
		switch {
		case o == nil || err == nil && !done[i]:
			continue
		case err != nil:
			o.kept = changes[i].Was
			b.unwritten[o.kept.ID] = true
		}
		r := o.telling
		b.o.Log.Info("reminder is due", "device", r.Device, "kind", r.Kind, "due", r.Due, "late", now.Sub(r.Due).Round(time.Second))
		b.tell(b.conversation(r.Device), o)
	}
	return err
}

// tell hands a reminder to a conversation.
func (b *Book) tell(there *alarms, o *bell) {
	if there == nil || !there.take(o) {
		b.settle(o, Lost)
	}
}

// change commits what becomes of a reminder by an event, as adjust has it. Where the
// reminder has changed in the meantime, the event happens to what it is now; where it means nothing, nothing is changed.
func (b *Book) change(ctx context.Context, r Reminder, e Event, adjust func(*Reminder)) error {
	for {
		next, ok := r.Next(e, time.Now())
		if !ok {
			return nil
		}
		if adjust != nil {
			adjust(&next)
		}
		done, err := b.o.Store.Change(ctx, Change{r, next})
		if err != nil || done[0] {
			return err
		}
		all, err := b.o.Store.Find(ctx, Query{Device: r.Device})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(other Reminder) bool { return other.ID == r.ID })
		if i < 0 {
			return nil
		}
		r = all[i]
	}
}

// settle commits what became of a reminder that was told, Heard or Lost; it tries until
// that is done.
func (b *Book) settle(o *bell, e Event) {
	var try func(context.Context)
	try = func(ctx context.Context) {
		next, ok := o.telling.Next(e, time.Now())
		if ok && (!o.final || e != Heard) {
			done, err := b.o.Store.Change(ctx, Change{o.kept, next})
			if err == nil && !done[0] { // that it rings was committed although the store said that it failed
				err = b.change(ctx, o.telling, e, nil)
			}
			if err != nil {
				b.o.Log.Error("what became of a reminder cannot be stored", "device", o.kept.Device, "err", err)
				b.again(try)
				return
			}
		}
		delete(b.unwritten, o.kept.ID)
		if there := b.conversation(o.kept.Device); e == Lost && there != nil && there != o.by { // it came before this was committed
			b.load(there)
		}
		b.refresh(ctx, o.kept.Device)
		b.looks.by(next.Due)
	}
	b.queue.do(try)
}

// again has work done after a while.
func (b *Book) again(work func(context.Context)) { b.queue.later(retryAfter, work) }

// conversation returns the conversation with a device; nil: there is none.
func (b *Book) conversation(device string) *alarms {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.there[device]
}

// join takes in a conversation.
func (b *Book) join(a *alarms) {
	b.mu.Lock()
	b.there[a.owner] = a
	b.mu.Unlock()
	b.load(a)
}

// load has told what a device has missed, and learns what is to come.
func (b *Book) load(a *alarms) {
	var load func(context.Context)
	load = func(ctx context.Context) {
		if a.isGone() {
			return
		}
		if err := b.meet(ctx, a); err != nil {
			b.o.Log.Error("reminders cannot be read", "device", a.owner, "err", err)
			b.again(load)
			return
		}
		b.refresh(ctx, a.owner)
	}
	b.queue.do(load)
}

// leave forgets a conversation.
func (b *Book) leave(a *alarms) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.there[a.owner] == a {
		delete(b.there, a.owner)
	}
}

// meet has told what a device has missed: of one that recurs only the last time.
func (b *Book) meet(ctx context.Context, a *alarms) error {
	missed, err := b.o.Store.Find(ctx, Query{Device: a.owner, States: []State{Missed}})
	if err != nil {
		return err
	}
	var changes []Change
	var bells []*bell
	for _, r := range missed {
		last, times := r.latest(time.Now())
		next, _ := last.Next(Met, time.Now())
		changes = append(changes, Change{r, next})
		last.State, last.Rang = Ringing, time.Now()
		bells = append(bells, &bell{kept: next, telling: last, times: times, final: next.State != Ringing})
	}
	if len(changes) == 0 {
		return nil
	}
	done, err := b.o.Store.Change(ctx, changes...)
	if err != nil {
		return err
	}
	for i, o := range bells {
		if done[i] {
			b.tell(a, o)
		}
	}
	return nil
}

// refresh tells a device's conversation when its next reminder is due.
func (b *Book) refresh(ctx context.Context, device string) {
	a := b.conversation(device)
	if a == nil {
		return
	}
	next, err := b.o.Store.Find(ctx, Query{Device: device, States: waiting(), Most: 1})
	switch {
	case err != nil: // as before
	case len(next) == 0:
		a.next.Store(0)
	default:
		a.next.Store(next[0].Due.UnixMilli())
	}
}

// followClock moves the timers when the clock was set.
func (b *Book) followClock(ctx context.Context) error {
	b.setting.RLock()
	d := b.clock.moved(b.o.Up)
	b.setting.RUnlock()
	if d == 0 {
		return nil
	}
	b.setting.Lock()
	defer b.setting.Unlock()
	d = b.clock.moved(b.o.Up)
	if d == 0 {
		return nil
	}
	b.o.Log.Info("the clock was set", "by", d.Round(time.Second))
	if err := b.o.Store.Shift(ctx, d); err != nil {
		return fmt.Errorf("move timers: %w", err)
	}
	b.clock.begin(b.o.Up)
	b.looks.unset()
	return nil
}

// newID returns a name for a reminder.
func newID() string { return rand.Text() }
