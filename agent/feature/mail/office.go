package mail

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature"
)

const (
	maxText    = 4000               // characters of a letter
	maxOpen    = 32                 // letters that wait for one device
	maxTries   = 5                  // after that a letter is refused
	defaultFor = 24 * time.Hour     // until a letter expires
	longest    = 7 * 24 * time.Hour // that one may wait
	keepOver   = 30 * 24 * time.Hour
	tidyEvery  = time.Hour
	storeLimit = 10 * time.Second // for one piece of work on the store
	again      = 30 * time.Second // until what was not heard is told again to a device that stays
)

// Options configure an [Office].
type Options struct {
	Store   Store
	NewID   func() string
	Changed func(Letter) // is told of each change of fate; nil: nobody is. It must not wait
	Log     *slog.Logger // nil: discarded
}

// Office has letters told, each once. It is the [feature.Feature] of the conversations.
//
// A letter is committed before Send returns, and committed as delivered before it is spoken. One that is being spoken when
// the program is killed stays delivered: it is not said a second time.
//
// # Concurrency
//
// All methods may be called at any time. A goroutine runs only while there is something to do.
type Office struct {
	o    Options
	life func() (context.Context, context.CancelFunc) // for one piece of work
	work sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	boxes   map[string]*box // of the devices that are there
	waiters map[string][]chan struct{}
	tidied  time.Time
	held    time.Time // letters are told from then on; zero: at once
}

// New makes an office. What it does by itself has the values of ctx, and ends with Close.
func New(ctx context.Context, o Options) *Office {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func(Letter) {}
	}
	ctx = context.WithoutCancel(ctx)
	return &Office{
		o: o, boxes: map[string]*box{}, waiters: map[string][]chan struct{}{},
		life: func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, storeLimit) },
	}
}

// Close commits what is left to commit. No conversation may run any more.
func (f *Office) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.work.Wait()
}

// run does a piece of work beside everything else, unless the office is closed.
func (f *Office) run(work func(ctx context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.work.Go(func() {
		ctx, stop := f.life()
		defer stop()
		work(ctx)
	})
}

// Send keeps a letter, and has it told as soon as its device can hear it. Of l the text, the device and whoever sends it
// count, and Ends: zero is 24 hours from now, and it is 7 days at most. It returns the letter as it is kept: queued, also
// where the device is there. Errors are [ErrLength], [ErrNoDevice], [ErrFull], and those of the store.
func (f *Office) Send(ctx context.Context, l Letter) (Letter, error) {
	now := time.Now()
	if l.Text = strings.TrimSpace(l.Text); l.Text == "" || l.Length() > maxText {
		return Letter{}, ErrLength
	}
	if l.Ends.IsZero() {
		l.Ends = now.Add(defaultFor)
	}
	f.mu.Lock()
	held := f.held
	f.mu.Unlock()
	if later := held.Add(defaultFor); l.Ends.Sub(now) >= defaultFor && l.Ends.Before(later) {
		l.Ends = later
	}
	if last := now.Add(longest); l.Ends.After(last) {
		l.Ends = last
	}
	l = Letter{ID: f.o.NewID(), Device: l.Device, Text: l.Text, Lang: l.Lang, Now: l.Now, Source: l.Source, By: l.By, Fate: Queued, Made: now, Ends: l.Ends}
	f.tidy(ctx, now)
	if err := f.o.Store.Add(ctx, l, maxOpen); err != nil {
		return Letter{}, err
	}
	f.o.Changed(l)
	f.mu.Lock()
	b := f.boxes[l.Device]
	f.mu.Unlock()
	if b != nil {
		b.nudge()
	}
	return l, nil
}

// Hold says that letters are told from a time on; zero: at once. Those that may wait for a day or longer wait for a day after
// it. Others end when whoever has sent them wants it: what is not heard by then is not to be said any more.
func (f *Office) Hold(until time.Time) {
	f.mu.Lock()
	f.held = until
	f.mu.Unlock()
	if until.IsZero() {
		return
	}
	f.run(func(ctx context.Context) {
		if err := f.o.Store.Prolong(ctx, defaultFor, until.Add(defaultFor)); err != nil {
			f.o.Log.Error("messages may end before quiet mode does", "err", err)
		}
	})
}

// tidy ends and forgets old letters, once an hour. What fails is tried again with the next letter.
func (f *Office) tidy(ctx context.Context, now time.Time) {
	f.mu.Lock()
	due := now.Sub(f.tidied) >= tidyEvery
	f.mu.Unlock()
	if !due {
		return
	}
	if err := f.o.Store.Tidy(ctx, now.Add(-keepOver)); err != nil {
		f.o.Log.Warn("old messages are not deleted", "err", err)
		return
	}
	f.mu.Lock()
	f.tidied = now
	f.mu.Unlock()
}

// There reports whether a device holds a conversation now: what is sent to it is told at its next pause.
func (f *Office) There(device string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.boxes[device] != nil
}

// Find returns a letter with its fate, or [ErrNoLetter].
func (f *Office) Find(ctx context.Context, id string) (Letter, error) { return f.o.Store.Get(ctx, id) }

// Last lists the letters of a device, or of all for "", with their fates, the newest first, at most limit of them.
func (f *Office) Last(ctx context.Context, device string, limit int) ([]Letter, error) {
	return f.o.Store.Last(ctx, device, limit)
}

// Await returns a letter when its fate is the end, or as it is when ctx ends, which is no error.
func (f *Office) Await(ctx context.Context, id string) (Letter, error) {
	for {
		changed := make(chan struct{})
		f.mu.Lock()
		f.waiters[id] = append(f.waiters[id], changed)
		f.mu.Unlock()
		l, err := f.o.Store.Get(context.WithoutCancel(ctx), id)
		if err != nil || l.Fate.Over() {
			f.leave(id, changed)
			return l, err
		}
		ends := time.NewTimer(time.Until(l.Ends))
		select {
		case <-changed:
		case <-ends.C: // it has expired, unless it is being told
			if l.Fate == Delivered {
				f.leave(id, changed)
				return l, nil
			}
		case <-ctx.Done():
		}
		ends.Stop()
		f.leave(id, changed)
		if ctx.Err() != nil {
			return l, nil
		}
	}
}

// leave takes back that somebody waits for a letter.
func (f *Office) leave(id string, changed chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []chan struct{}
	for _, c := range f.waiters[id] {
		if c != changed {
			rest = append(rest, c)
		}
	}
	if f.waiters[id] = rest; len(rest) == 0 {
		delete(f.waiters, id)
	}
}

// Withdraw refuses a letter that waits; [ErrOver]: it was given to its device already.
func (f *Office) Withdraw(ctx context.Context, id string) (Letter, error) {
	was, err := f.o.Store.Get(ctx, id)
	if err != nil {
		return Letter{}, err
	}
	if was.Fate != Queued {
		return was, ErrOver
	}
	now := was
	now.Fate = Refused
	changed, err := f.change(ctx, was, now)
	switch {
	case err != nil:
		return was, err
	case !changed:
		return was, ErrOver
	}
	return now, nil
}

// change commits what has become of a letter, and tells who waits for that.
func (f *Office) change(ctx context.Context, was, now Letter) (bool, error) {
	changed, err := f.o.Store.Change(ctx, was, now)
	if err != nil || !changed {
		return false, err
	}
	f.o.Changed(now)
	f.mu.Lock()
	waiters := f.waiters[now.ID]
	delete(f.waiters, now.ID)
	f.mu.Unlock()
	for _, c := range waiters {
		close(c)
	}
	return true, nil
}

// Name is the name of its state, of which a device's record keeps none.
func (f *Office) Name() string { return "mail" }

// Attach joins a conversation: its device is told what waits for it. A device that is not known has no letters.
func (f *Office) Attach(h feature.Host, _ feature.State) feature.Instance {
	s := h.Env().Session
	b := &box{Host: h, office: f, device: s.DeviceID, at: time.Now().Add(again + time.Second)} // what may not be told yet can be then
	if s.Unknown {
		b.state, b.at = boxGone, time.Time{}
		return b
	}
	f.mu.Lock()
	f.boxes[b.device] = b
	f.mu.Unlock()
	b.nudge()
	return b
}

// left takes a conversation out, unless a newer one of its device is there.
func (f *Office) left(b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.boxes[b.device] == b {
		delete(f.boxes, b.device)
	}
}
