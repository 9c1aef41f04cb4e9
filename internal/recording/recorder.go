package recording

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/audio"
	"xiaozhi/store"
)

// Limits of what waits for the disk. A turn for which there is no room is not recorded.
const (
	maxWaiting      = 64
	maxWaitingBytes = 16 << 20
	batchTurns      = 16 // that are written before their rows, in one transaction
)

const (
	tidyEach  = time.Hour
	closeTime = 10 * time.Second // for what waits when the program ends
	tellEach  = time.Minute      // between lines of the log about turns that were dropped
)

// Table keeps the rows. [store.Recordings] does.
type Table interface {
	// Put keeps rows of turns that are there, and says which.
	Put(ctx context.Context, all []store.Recording) (kept []bool, err error)
	// Ended lists rows whose time is over; Oldest those of the oldest turns first.
	Ended(ctx context.Context, limit int) ([]store.Recording, error)
	Oldest(ctx context.Context, limit int) ([]store.Recording, error)
	OfConversation(ctx context.Context, conversationID string) ([]store.Recording, error)
	DeleteAll(ctx context.Context, all []store.Recording) error
	Shorten(ctx context.Context, keep time.Duration) error
	Bytes(ctx context.Context) (int, error)
}

// Options make a Recorder.
type Options struct {
	Dir   string // made when there is something to write
	Table Table
	Flush func(ctx context.Context) error // returns when all turns that were handed to the store are written
	Keep  time.Duration                   // unless a device has days of its own
	Quota int64                           // bytes of all recordings; the oldest make room
	Log   *slog.Logger

	write func(path string, p *audio.Packets, rate int) (int64, error) // of tests; nil: the disk
}

// Turn is the sound of one turn. A nil side is not recorded.
type Turn struct {
	Device, Talk, ID string
	At               time.Time
	User, Reply      *audio.Packets
	Rate             int // of the reply, in Hz
}

func (t *Turn) bytes() (n int) {
	for _, p := range []*audio.Packets{t.User, t.Reply} {
		if p != nil {
			n += p.Bytes()
		}
	}
	return n
}

// Stats says how a [Recorder] does.
type Stats struct {
	Waiting, WaitingBytes int
	Written, Dropped      uint64 // turns
	DroppedAt             time.Time
	Err                   error // of the last attempt to write, or else to delete, if it failed
}

// Recorder owns the folder of recordings and the goroutine that writes there. A nil Recorder records nothing.
type Recorder struct {
	o     Options
	keep  atomic.Int64 // Options.Keep
	quota atomic.Int64 // Options.Quota
	dir   folder

	mu      sync.Mutex
	waiting []Turn
	bytes   int                     // of waiting
	gone    map[string][]chan error // folders to be deleted, with who waits for that
	stats   Stats
	told    time.Time // when dropped turns were logged last
	writing error     // of the last attempt to write; nil: it went well
	tidying error     // the same of deleting what is too old or too much
	closed  bool

	wake   chan struct{} // 1: something waits
	stop   chan struct{}
	cancel context.CancelFunc // gives up what is being done
	done   chan struct{}
}

// New starts a recorder. It opens nothing before there is something to write or to delete. Values of ctx are used, its
// end is not: Close ends the recorder.
func New(ctx context.Context, o Options) *Recorder {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Recorder{
		o: o, dir: folder{path: o.Dir}, gone: map[string][]chan error{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), cancel: cancel, done: make(chan struct{}),
	}
	if r.o.write == nil {
		r.o.write = r.dir.write
	}
	r.SetLimits(o.Keep, o.Quota)
	go r.run(ctx)
	return r
}

// SetLimits puts others in the place of Keep and Quota of the options. What is there already is looked at within an hour.
func (r *Recorder) SetLimits(keep time.Duration, quota int64) {
	if r != nil {
		r.keep.Store(int64(keep))
		r.quota.Store(quota)
	}
}

// Put takes the sound of a turn that was handed to the store. It never waits.
func (r *Recorder) Put(t Turn) {
	size := t.bytes()
	if r == nil || size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.waiting) >= maxWaiting || r.bytes+size > maxWaitingBytes {
		r.drop(1)
		return
	}
	r.waiting, r.bytes = append(r.waiting, t), r.bytes+size
	r.signal()
}

// drop counts turns that are not recorded. The caller holds mu.
func (r *Recorder) drop(n int) {
	now := time.Now()
	r.stats.Dropped, r.stats.DroppedAt = r.stats.Dropped+uint64(n), now
	if now.Sub(r.told) >= tellEach {
		r.told = now
		r.o.Log.Warn("the sound of turns is not recorded", "dropped", r.stats.Dropped, "waiting", len(r.waiting))
	}
}

// signal wakes the goroutine. The caller holds mu.
func (r *Recorder) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Erase deletes the recordings of a talk. It never waits.
func (r *Recorder) Erase(device, talk string) {
	if r != nil {
		r.delete(nil, func(t *Turn) bool { return t.Device == device && t.Talk == talk }, name(device)+"/"+name(talk))
	}
}

// Drop deletes all recordings of a device. It never waits.
func (r *Recorder) Drop(device string) {
	if r != nil {
		r.delete(nil, func(t *Turn) bool { return t.Device == device }, name(device))
	}
}

// Forget deletes all recordings of a device, and returns when no file of them is left. The device's turns must be gone
// from the store.
func (r *Recorder) Forget(ctx context.Context, device string) error {
	if r == nil {
		return nil
	}
	answer := make(chan error, 1)
	r.delete(answer, func(t *Turn) bool { return t.Device == device }, name(device))
	select {
	case err := <-answer:
		return err
	case <-r.done:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errClosed = errors.New("the recorder is closed")

// Remove deletes the recordings of a turn, or of all turns of a talk for "", and returns when no file of them is left. The
// turns must be gone from the store.
func (r *Recorder) Remove(ctx context.Context, device, talk, turn string) error {
	if r == nil {
		return nil
	}
	of := name(device) + "/" + name(talk)
	paths := []string{of}
	if turn != "" {
		of += "/" + name(turn) + "-"
		paths = []string{of + sideUser + suffix, of + sideReply + suffix}
	}
	answer := make(chan error, len(paths))
	for _, path := range paths {
		r.delete(answer, func(t *Turn) bool { return t.Device == device && t.Talk == talk && (turn == "" || t.ID == turn) }, path)
	}
	var err error
	for range paths {
		select {
		case one := <-answer:
			err = errors.Join(err, one)
		case <-r.done:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// Open opens the file of a recording, as its row names it. One that is not there is [fs.ErrNotExist].
func (r *Recorder) Open(path string) (*os.File, error) {
	if r == nil {
		return nil, fs.ErrNotExist
	}
	return os.OpenInRoot(r.o.Dir, filepath.FromSlash(path))
}

// delete drops turns that wait and has a folder deleted. answer learns how that ended; nil: nobody wants to know.
func (r *Recorder) delete(answer chan error, which func(*Turn) bool, dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(t Turn) bool {
		if which(&t) {
			r.bytes -= t.bytes()
			return true
		}
		return false
	})
	if answer != nil {
		r.gone[dir] = append(r.gone[dir], answer)
	} else if _, is := r.gone[dir]; !is {
		r.gone[dir] = nil
	}
	r.signal()
}

// Stats says how the recorder does.
func (r *Recorder) Stats() Stats {
	if r == nil {
		return Stats{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Err = cmp.Or(r.writing, r.tidying)
	s.Waiting, s.WaitingBytes = len(r.waiting), r.bytes
	return s
}

// Close writes what waits and ends the goroutine. A disk that does not answer is waited for ten seconds; then it is given up.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	close(r.stop)
	defer r.cancel()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		r.o.Log.Error("the disk does not take recordings", "waiting", r.Stats().Waiting)
	}
}

// run writes and deletes until Close.
func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	r.note(&r.tidying, r.tidy(ctx))
	tick := time.NewTicker(tidyEach)
	defer tick.Stop()
	for {
		select {
		case <-r.wake:
			r.work(ctx)
		case <-tick.C:
			r.note(&r.tidying, r.tidy(ctx))
		case <-r.stop:
			r.work(ctx)
			r.dir.close()
			return
		}
	}
}

// work does all that waits.
func (r *Recorder) work(ctx context.Context) {
	for {
		r.mu.Lock()
		gone := r.gone
		r.gone = map[string][]chan error{}
		n := min(len(r.waiting), batchTurns)
		turns := slices.Clone(r.waiting[:n])
		r.waiting = slices.Delete(r.waiting, 0, n)
		for i := range turns {
			r.bytes -= turns[i].bytes()
		}
		r.mu.Unlock()
		if len(gone) == 0 && n == 0 {
			return
		}
		for dir, waits := range gone {
			err := r.dir.removeAll(dir)
			for _, answer := range waits {
				answer <- err
			}
			if err != nil {
				r.o.Log.Error("recordings were not deleted", "folder", dir, "err", err)
			}
		}
		r.record(ctx, turns)
	}
}

// note keeps the end of an attempt in was, and logs when such attempts begin to fail and when that is over.
func (r *Recorder) note(was *error, err error) {
	r.mu.Lock()
	before := *was
	*was = err
	r.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		r.o.Log.Error("recordings fail", "err", err)
	case err == nil && before != nil:
		r.o.Log.Info("recordings do not fail any more")
	}
}
