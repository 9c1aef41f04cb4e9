package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Limits of what waits to be written. When there is more, the oldest turn is dropped.
const (
	maxWaiting      = 4096
	maxWaitingBytes = 8 << 20
	maxWaitingCalls = 1024 // outside of turns
	batchRows       = 256
	batchTime       = 250 * time.Millisecond // from the first that waits until it is written
	maxRetry        = 10 * time.Second       // between attempts to write while the database fails
	lastTime        = 10 * time.Second       // for writing at the end of the program
)

// LogStats counts what [Log] did.
type LogStats struct {
	Waiting, WaitingBytes      int    // not written yet
	Written, Dropped, Rejected uint64 // Rejected: the database would never take them, such as turns of forgotten devices
	DroppedAt                  time.Time
}

// Seen is a sign of life of a device. Fields that are empty keep what is known.
type Seen struct {
	AskedAt, HelloAt, TurnAt             time.Time
	Board, Chip, Firmware                string
	Language, Features, Remote, LastStep string
}

// ended is the end of a conversation.
type ended struct {
	at    time.Time
	cause string
}

// stateKey names something that was learned of a device.
type stateKey struct{ device, name string }

// learned is the newest of what was learned.
type learned struct {
	doc string
	at  time.Time
}

// batch holds the rows of one transaction.
type batch struct {
	entries    []*Entry
	bytes      int              // of the entries
	ends       map[string]ended // by conversation
	seen       map[string]Seen  // by device
	erased     map[string]bool  // conversations
	states     map[stateKey]learned
	stateBytes int
	calls      []Call    // outside of turns
	over       []CallEnd // of calls whose turns were handed over
}

func newBatch() batch {
	return batch{ends: map[string]ended{}, erased: map[string]bool{}, seen: map[string]Seen{}, states: map[stateKey]learned{}}
}

func (b *batch) empty() bool {
	return len(b.entries) == 0 && len(b.ends) == 0 && len(b.erased) == 0 && len(b.seen) == 0 && len(b.states) == 0 && len(b.calls) == 0 && len(b.over) == 0
}

// load counts turns and their bytes.
type load struct{ entries, bytes int }

// Log writes what tells of the past, in batches on its own goroutine. Its methods take a microsecond, never wait for
// the database, and may be called from any goroutine. Of signs of life and of what was learned only the newest is
// kept; turns wait in a queue of 4096 or 8 MiB, from which the oldest is dropped when it is full, and so do 1024 calls
// outside of turns.
type Log struct {
	db  *database
	log *slog.Logger

	mu        sync.Mutex
	waiting   batch // what came since the last batch was taken
	flight    load  // entries that are being written; they count as waiting
	stats     LogStats
	first     func(context.Context) error // is run before each batch; nil: nothing
	told      func()                      // of turns that were written; nil: nobody is
	forgotten map[string]bool             // devices, since the batch was taken that is being written

	wake, full chan struct{} // 1 each: something waits, a whole batch waits
	flushes    chan chan error
	stop       chan struct{}
	cancel     context.CancelFunc // gives up what is being written
	done       chan struct{}
}

// newLog starts the goroutine that writes. Values of ctx are used, its end is not: close ends it.
func newLog(ctx context.Context, db *database, log *slog.Logger) *Log {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Log{
		db: db, log: log, waiting: newBatch(), wake: make(chan struct{}, 1), full: make(chan struct{}, 1),
		flushes: make(chan chan error), stop: make(chan struct{}), cancel: cancel, done: make(chan struct{}), forgotten: map[string]bool{},
	}
	go l.run(ctx)
	return l
}

// After has f run before each batch is written: it commits what the rows of a batch refer to, the devices. While it
// fails the batch waits.
func (l *Log) After(f func(context.Context) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = f
}

// Follow has f called when turns were written. It must not wait.
func (l *Log) Follow(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = f
}

// signal makes one more receive from a channel of one place succeed.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Put hands a finished turn over. e belongs to the log from then on.
func (l *Log) Put(e *Entry) {
	e.Turn.ConversationID, e.Turn.DeviceID = e.Conversation.ID, e.Conversation.DeviceID
	e.bytes = e.size()
	l.mu.Lock()
	b := &l.waiting
	b.entries = append(b.entries, e)
	b.bytes += e.bytes
	l.limit()
	delete(b.ends, e.Turn.ConversationID) // it goes on
	merge(b.seen, e.Turn.DeviceID, Seen{TurnAt: e.Turn.At})
	whole := len(b.entries) >= batchRows
	l.mu.Unlock()
	signal(l.wake)
	if whole {
		signal(l.full)
	}
}

// Call hands over a call that belongs to no turn. Its id is made if it has none.
func (l *Log) Call(c Call) {
	if c.ID == "" {
		c.ID = NewID()
	}
	l.mu.Lock()
	l.waiting.calls = append(l.waiting.calls, c)
	l.limit()
	l.mu.Unlock()
	signal(l.wake)
}

// CallEnd is the end of a call that went on when its turn was handed over. What is empty of the first two lines stays as
// it is kept.
type CallEnd struct {
	ID, DeviceID, Name, Source, Kind string
	Result                           string

	At             time.Time // it was sent; zero: it never was
	Took           time.Duration
	ResultDigest   string
	Fault, Refusal string
	Late           bool // it failed after its success was assumed
}

// CallOver hands over the end of a call, in place of what is kept of it. Its turn was handed over before.
func (l *Log) CallOver(e CallEnd) {
	l.mu.Lock()
	l.waiting.over = append(l.waiting.over, e)
	l.limit()
	l.mu.Unlock()
	signal(l.wake)
}

// limit drops the oldest turns and calls while too many wait. l.mu is held.
func (l *Log) limit() {
	b := &l.waiting
	if over := len(b.calls) - maxWaitingCalls; over > 0 {
		b.calls = slices.Delete(b.calls, 0, over)
		l.stats.Dropped += uint64(over)
		l.stats.DroppedAt = l.db.clock()
	}
	if over := len(b.over) - maxWaitingCalls; over > 0 {
		b.over = slices.Delete(b.over, 0, over)
		l.stats.Dropped += uint64(over)
		l.stats.DroppedAt = l.db.clock()
	}
	for len(b.entries) > 1 && (len(b.entries)+l.flight.entries > maxWaiting || b.bytes+l.flight.bytes > maxWaitingBytes) {
		b.bytes -= b.entries[0].bytes
		b.entries[0] = nil
		b.entries = b.entries[1:]
		l.stats.Dropped++
		l.stats.DroppedAt = l.db.clock()
	}
}

// Ended keeps the end of a conversation whose turns were handed over.
func (l *Log) Ended(conversationID string, at time.Time, cause string) {
	l.mu.Lock()
	l.waiting.ends[conversationID] = ended{at, cause}
	l.mu.Unlock()
	signal(l.wake)
}

// Erase deletes a conversation with all its turns. No turn of it may be handed over any more.
func (l *Log) Erase(conversationID string) {
	l.mu.Lock()
	l.waiting.drop(func(e *Entry) bool { return e.Turn.ConversationID == conversationID })
	l.waiting.erased[conversationID] = true
	l.mu.Unlock()
	signal(l.wake)
}

// drop gives up entries.
func (b *batch) drop(which func(*Entry) bool) {
	b.entries = slices.DeleteFunc(b.entries, func(e *Entry) bool {
		if which(e) {
			b.bytes -= e.bytes
			return true
		}
		return false
	})
}

// Seen keeps a sign of life of a device.
func (l *Log) Seen(deviceID string, s Seen) {
	l.mu.Lock()
	merge(l.waiting.seen, deviceID, s)
	l.mu.Unlock()
	signal(l.wake)
}

// Learned keeps what was learned of a device under a name, in place of what was learned before. "" deletes it.
func (l *Log) Learned(deviceID, name, doc string) {
	key := stateKey{deviceID, name}
	l.mu.Lock()
	b := &l.waiting
	if size := b.stateBytes - len(b.states[key].doc) + len(doc); size <= maxWaitingBytes {
		b.states[key], b.stateBytes = learned{doc, l.db.clock()}, size
	} else {
		l.stats.Rejected++
	}
	l.mu.Unlock()
	signal(l.wake)
}

// merge lays a sign of life over the one that waits.
func merge(seen map[string]Seen, deviceID string, n Seen) {
	s := seen[deviceID]
	s.AskedAt, s.HelloAt, s.TurnAt = later(s.AskedAt, n.AskedAt), later(s.HelloAt, n.HelloAt), later(s.TurnAt, n.TurnAt)
	s.Board, s.Chip, s.Firmware = cmp.Or(n.Board, s.Board), cmp.Or(n.Chip, s.Chip), cmp.Or(n.Firmware, s.Firmware)
	s.Language, s.Features, s.Remote, s.LastStep = cmp.Or(n.Language, s.Language), cmp.Or(n.Features, s.Features), cmp.Or(n.Remote, s.Remote), cmp.Or(n.LastStep, s.LastStep)
	seen[deviceID] = s
}

// later returns n, or old if n is not set.
func later(old, n time.Time) time.Time {
	if n.IsZero() {
		return old
	}
	return n
}

// forget drops what waits of a device, and what is being written of it if that fails.
func (l *Log) forget(deviceID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgotten[deviceID] = true
	l.waiting.dropDevice(deviceID)
}

// dropDevice gives up all of a device.
func (b *batch) dropDevice(deviceID string) {
	b.calls = slices.DeleteFunc(b.calls, func(c Call) bool { return c.DeviceID == deviceID })
	b.over = slices.DeleteFunc(b.over, func(e CallEnd) bool { return e.DeviceID == deviceID })
	b.drop(func(e *Entry) bool { return e.Turn.DeviceID == deviceID })
	delete(b.seen, deviceID)
	for key, s := range b.states {
		if key.device == deviceID {
			b.stateBytes -= len(s.doc)
			delete(b.states, key)
		}
	}
}

// Stats returns what was counted.
func (l *Log) Stats() LogStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Waiting, s.WaitingBytes = len(l.waiting.entries)+l.flight.entries, l.waiting.bytes+l.flight.bytes+l.waiting.stateBytes
	return s
}

// Flush writes what waits, and returns when it is written or could not be.
func (l *Log) Flush(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case l.flushes <- answer:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errClosed
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errClosed = errors.New("the store is closed")

// close writes what waits, once, and ends the goroutine. What takes too long is given up.
func (l *Log) close() {
	close(l.stop)
	timer := time.AfterFunc(lastTime, l.cancel)
	defer timer.Stop()
	<-l.done
	l.cancel()
}
