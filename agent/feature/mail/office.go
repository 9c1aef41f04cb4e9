package mail

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature"
)

const (
	maxText    = 4000                 // characters of a letter
	maxOpen    = 32                   // letters that are not over, of one device
	maxAll     = 16384                // the same of all devices
	maxTries   = 5                    // after that a letter is refused
	defaultFor = 24 * time.Hour       // until a letter expires, from when it may be told
	longest    = 7 * 24 * time.Hour   // that one may wait
	farthest   = 366 * 24 * time.Hour // until it may be told
	keepOver   = 30 * 24 * time.Hour
	storeLimit = 10 * time.Second // for one piece of work on the store
	songLimit  = 90 * time.Second // until a song can be played
	again      = 30 * time.Second // until what was not heard is told again to a device that stays
	answerIn   = 30 * time.Second // after a question
	maxAnswer  = 8000             // bytes of one
)

// Songs finds and fetches what letters play.
type Songs interface {
	// Prepare finds a song by its name, or fetches it from its URL, and returns the id by which music opens it, with its title.
	// [ErrNoSong]: there is none.
	Prepare(ctx context.Context, song string) (id, title string, err error)
}

// Options configure an [Office].
type Options struct {
	Store    Store
	NewID    func() string
	Songs    Songs                 // nil: none can be played
	Changed  func(Letter)          // is told of each change of fate; nil: nobody is. It must not wait
	KeepOpen func() time.Duration  // a letter that is due so soon keeps the channel of its device open; nil: none does
	Zone     func() *time.Location // nil: UTC
	Log      *slog.Logger          // nil: discarded
}

// Office has letters told, each once. It is the [feature.Feature] of the conversations.
//
// A letter is committed before Send returns, as delivered before its device gets it, and as begun before it is spoken. One
// that is being spoken when the program is killed is [Lost]: it is not said a second time. One that was not begun waits again.
//
// # Concurrency
//
// All methods may be called at any time. A goroutine runs only while there is something to do.
type Office struct {
	o     Options
	life  func(limit time.Duration) (context.Context, context.CancelFunc) // for one piece of work
	work  sync.WaitGroup
	sweep sweeper

	mu      sync.Mutex
	closed  bool
	boxes   map[string]*box // of the devices that are there
	waiters map[string][]chan struct{}
	held    map[string]time.Time // letters of a device, "" all, are told from then on
}

// New makes an office. What it does by itself has the values of ctx, and ends with Close.
func New(ctx context.Context, o Options) *Office {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func(Letter) {}
	}
	if o.KeepOpen == nil {
		o.KeepOpen = func() time.Duration { return 0 }
	}
	ctx = context.WithoutCancel(ctx)
	f := &Office{
		o: o, boxes: map[string]*box{}, waiters: map[string][]chan struct{}{}, held: map[string]time.Time{},
		life: func(limit time.Duration) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, limit)
		},
	}
	f.sweep.look = func() { f.run(storeLimit, f.tidy) }
	return f
}

// Start takes up what an earlier run of the program has left in the store. No conversation may have begun.
func (f *Office) Start(ctx context.Context) error {
	lost, err := f.o.Store.Recover(ctx)
	if err != nil {
		return err
	}
	if lost > 0 {
		f.o.Log.Warn("messages were being told when the program ended, and are not told again", "count", lost)
	}
	f.sweep.now()
	return nil
}

// Close commits what is left to commit. No conversation may run any more.
func (f *Office) Close() {
	f.sweep.stop()
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.work.Wait()
}

// run does a piece of work beside everything else, unless the office is closed.
func (f *Office) run(limit time.Duration, work func(ctx context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	f.work.Go(func() {
		ctx, stop := f.life(limit)
		defer stop()
		work(ctx)
	})
}

// Send keeps a letter, and has it told as soon as its device can hear it and its time has come. Of l what is told, the device
// and whoever sends it count, and At and Ends: zero is now, and 24 hours from then; it is 7 days at most. It returns the letter as it is
// kept: queued, also where the device is there. Errors are [ErrLength], [ErrTime], [ErrNoDevice], [ErrFull], [ErrTwice], and those of
// the store.
func (f *Office) Send(ctx context.Context, l Letter) (Letter, error) {
	all, failed, err := f.SendAll(ctx, []Letter{l})
	if err == nil {
		err = failed[0]
	}
	if err != nil {
		return Letter{}, err
	}
	return all[0], nil
}

// Post is Send for who has no time of its own: it takes that of the office. It returns the letter's ID.
func (f *Office) Post(l Letter) (id string, err error) {
	ctx, stop := f.life(storeLimit)
	defer stop()
	l, err = f.Send(ctx, l)
	return l.ID, err
}

// SendAll sends letters that belong together, one a device, as one batch. failed has for each why it is not kept, or nil; what
// is not kept as too much waits for its device is refused, [TooMany], and has no ID.
func (f *Office) SendAll(ctx context.Context, all []Letter) (kept []Letter, failed []error, err error) {
	now, batch := time.Now().Truncate(time.Millisecond), f.o.NewID()
	for i, l := range all {
		if l, err = f.made(l, now); err != nil {
			return nil, nil, err
		}
		l.Batch = batch
		if l.ID = batch; len(all) > 1 {
			l.ID = f.o.NewID()
		}
		kept = append(kept, l)
		all[i] = l
	}
	if failed, err = f.o.Store.Add(ctx, kept, Bounds{maxOpen, maxAll}); err != nil {
		return nil, nil, err
	}
	for i := range kept {
		l := &kept[i]
		if failed[i] != nil {
			l.ID, l.Fate = "", Refused
			if errors.Is(failed[i], ErrFull) {
				l.Why = TooMany
			}
			continue
		}
		f.o.Changed(*l)
		f.sweep.by(l.Ends)
		f.nudge(l.Device)
	}
	return kept, failed, nil
}

// made returns a letter as it is kept, or why it cannot be.
func (f *Office) made(l Letter, now time.Time) (Letter, error) {
	l = Letter{
		Device: l.Device, Kind: cmp.Or(l.Kind, Say), Text: strings.TrimSpace(l.Text), Prompt: strings.TrimSpace(l.Prompt), Song: strings.TrimSpace(l.Song), Lang: l.Lang, Now: l.Now,
		Source: l.Source, By: l.By, Key: l.Key, Priority: l.Priority, Held: l.Held, Fate: Queued, Made: now, At: l.At.Truncate(time.Millisecond), Ends: l.Ends.Truncate(time.Millisecond),
	}
	told := cmp.Or(l.Text, l.Prompt)
	if l.Kind == Play {
		told = l.Song
	}
	if told == "" || max(len([]rune(told)), len([]rune(l.Text)), len([]rune(l.Prompt))) > maxText {
		return l, ErrLength
	}
	if l.At.Before(now) {
		l.At = now
	}
	if l.At.Sub(now) > farthest {
		return l, ErrTime
	}
	if l.Ends.IsZero() {
		l.Ends = l.At.Add(defaultFor)
	}
	f.mu.Lock()
	held := f.held[""]
	if own := f.held[l.Device]; own.After(held) {
		held = own
	}
	f.mu.Unlock()
	if later := held.Add(defaultFor); l.Ends.Sub(l.At) >= defaultFor && l.Ends.Before(later) {
		l.Ends = later
	}
	if last := l.At.Add(longest); l.Ends.After(last) {
		l.Ends = last
	}
	if l.Ends = l.Ends.Truncate(time.Millisecond); !l.Ends.After(l.At) {
		return l, ErrTime
	}
	return l, nil
}

// nudge has a device that is there look for letters.
func (f *Office) nudge(device string) {
	f.mu.Lock()
	b := f.boxes[device]
	f.mu.Unlock()
	if b != nil {
		b.nudge()
	}
}

// Amend changes what a letter that is held tells, and has it told from now on. It takes the time of the office.
func (f *Office) Amend(id string, text, prompt string) error {
	ctx, stop := f.life(storeLimit)
	defer stop()
	was, err := f.o.Store.Get(ctx, id)
	if err != nil {
		return err
	}
	now := was
	now.Text, now.Prompt, now.Held = text, prompt, false
	if !was.Held {
		return ErrOver
	}
	changed, err := f.change(ctx, was, now)
	if err == nil && !changed {
		err = ErrOver
	}
	if err == nil {
		f.sweep.by(now.Ends)
		f.nudge(now.Device)
	}
	return err
}

// Hold says that the letters of a device, "" all, are told from a time on; zero: at once. Those that may wait for a day or
// longer wait for a day after it. Others end when whoever has sent them wants it: what is not heard by then is not to be said any more.
func (f *Office) Hold(device string, until time.Time) {
	f.mu.Lock()
	if f.held[device] = until; until.IsZero() {
		delete(f.held, device)
	}
	f.mu.Unlock()
	if until.IsZero() {
		return
	}
	f.run(storeLimit, func(ctx context.Context) {
		if err := f.o.Store.Prolong(ctx, device, defaultFor, until.Add(defaultFor)); err != nil {
			f.o.Log.Error("messages may end before quiet mode does", "err", err)
		}
	})
}

// There reports whether a device holds a conversation now: what is sent to it is told at its next pause.
func (f *Office) There(device string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.boxes[device] != nil
}

// Find returns a letter with its fate, or [ErrNoLetter].
func (f *Office) Find(ctx context.Context, id string) (Letter, error) { return f.o.Store.Get(ctx, id) }

// List lists letters with their fates, the newest first.
func (f *Office) List(ctx context.Context, filter Filter) ([]Letter, error) {
	return f.o.Store.List(ctx, filter)
}

// Last lists the letters of a device, with their fates, the newest first, at most limit of them.
func (f *Office) Last(ctx context.Context, device string, limit int) ([]Letter, error) {
	return f.List(ctx, Filter{Devices: []string{device}, Limit: limit})
}

// Await returns a letter when its fate is the end, or as it is when ctx ends, which is no error.
func (f *Office) Await(ctx context.Context, id string) (Letter, error) {
	for {
		changed := make(chan struct{})
		f.mu.Lock()
		f.waiters[id] = append(f.waiters[id], changed)
		f.mu.Unlock()
		l, err := f.o.Store.Get(context.WithoutCancel(ctx), id)
		if err != nil || l.Fate.Over() || ctx.Err() != nil {
			f.leave(id, changed)
			return l, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		f.leave(id, changed)
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
	now.Fate, now.Why = Refused, Withdrawn
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
	if now.Fate != was.Fate {
		f.tell(now)
	}
	return true, nil
}

// tell tells who follows a letter what has become of it.
func (f *Office) tell(l Letter) {
	f.o.Changed(l)
	f.mu.Lock()
	waiters := f.waiters[l.ID]
	delete(f.waiters, l.ID)
	f.mu.Unlock()
	for _, c := range waiters {
		close(c)
	}
}

// Name is the name of its state, of which a device's record keeps none.
func (f *Office) Name() string { return "mail" }

// Attach joins a conversation: its device is told what waits for it. A device that is not known has no letters.
func (f *Office) Attach(h feature.Host, _ feature.State) feature.Instance {
	s := h.Env().Session
	b := newBox(h, f, s.DeviceID)
	if s.Unknown {
		b.gone = true
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
