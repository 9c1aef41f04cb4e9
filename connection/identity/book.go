package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/lockout"
)

// Limits of what is kept.
const (
	maxRecords = 4096             // of pairs; those that are no regulars, and that have used no token, make room
	seenEvery  = time.Hour        // between two notes of when a pair was seen
	commitTime = 3 * time.Second  // for writing a change down before somebody is answered
	forgetTime = time.Minute      // the same of one that deletes all that was ever said to a device
	newFor     = 24 * time.Hour   // a pair that nobody has accepted is no regular
	retryAfter = 10 * time.Second // when it could not be written
)

// Unknown says what a device may do whose Device-Id another pair holds.
type Unknown int

// What strangers may do.
const (
	LocalOnly  Unknown = iota // talk, with the tools of this server and its own
	RefuseThem                // nothing
	AllowAll                  // all that a known device may
)

// ParseUnknown returns what a name in the settings stands for.
func ParseUnknown(name string) (u Unknown, ok bool) {
	i := slices.Index([]string{"local_only", "refuse", "all"}, name)
	return Unknown(max(i, 0)), i >= 0
}

// Options make a [Book]. Records must be set.
type Options struct {
	Records  Records
	Mode     Mode
	HasOwner func() bool // somebody owns the server, for [Auto]; nil: nobody does
	Unknown  Unknown
	// Shared says that all devices show one token that is set, so that none is made for
	// each of them.
	Shared bool
	// Expel ends the connection of a device that has become another, was refused or
	// forgotten. It must not wait. nil: there are no connections.
	Expel func(id string)
	Log   *slog.Logger // nil: discarded
}

// Book knows who is known, and treats devices by it.
//
// # Concurrency
//
// All methods may be called at the same time. Provision, Accept, Rename, Refuse and
// Forget return when what they have changed is written down; the others do not wait
// for the disk.
type Book struct {
	o   Options
	log *slog.Logger

	saving  chan struct{} // size 1: full while a change is written, so that the last is the newest
	changed chan struct{} // size 1: something is dirty

	mu      sync.Mutex
	byID    map[string]*entry
	dirty   map[string]bool // ids whose records are to be written
	desk    *desk
	notices notices
	became  *lockout.Lines // of devices that nobody has accepted: they may be made up
	guesses *lockout.Guesses
}

// entry is a record and what is known of its pair until the program ends.
type entry struct {
	Record
	token  string    // that was offered last, while it may have to be told again
	failed bool      // the pair has come without its token
	noted  time.Time // Seen, as it is written down
}

// New reads all records and returns a book.
func New(ctx context.Context, o Options) (*Book, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Expel == nil {
		o.Expel = func(string) {}
	}
	records, pairings, err := o.Records.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the known devices: %w", err)
	}
	b := &Book{
		o: o, log: o.Log, saving: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		byID: map[string]*entry{}, dirty: map[string]bool{}, desk: newDesk(), notices: notices{}, became: lockout.NewLines(), guesses: lockout.New(),
	}
	for _, r := range records {
		b.byID[r.ID] = &entry{Record: r, noted: r.Seen}
	}
	for _, p := range pairings {
		if b.byID[p.ID] != nil {
			b.desk.load(p)
		}
	}
	return b, nil
}

// Mode returns the mode that counts now; it is never [Auto].
func (b *Book) Mode() Mode {
	switch {
	case b.o.Mode != Auto:
		return b.o.Mode
	case b.o.HasOwner != nil && b.o.HasOwner():
		return Ask
	default:
		return Open
	}
}

// Run writes down what has changed, until ctx ends, and then what is left.
func (b *Book) Run(ctx context.Context) {
	retry := time.NewTimer(retryAfter)
	defer retry.Stop()
	for {
		select {
		case <-b.changed:
		case <-retry.C:
		case <-ctx.Done():
			b.written(context.WithoutCancel(ctx))
			return
		}
		b.written(ctx)
		retry.Reset(retryAfter)
	}
}

// written writes down what has changed, and logs that it cannot. If ctx ends meanwhile, for a device that has
// gone, [Book.Run] does it.
func (b *Book) written(ctx context.Context) {
	if err := b.Flush(ctx); err != nil && ctx.Err() == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.notices.due("", time.Now()) {
			b.log.Error("known devices are not written down; they are known until the server stops", "err", err)
		}
	}
}

// Flush writes down all that has changed: what refers to a device can be kept when it returns nil.
func (b *Book) Flush(ctx context.Context) error {
	failed, err := b.flush(ctx, commitTime)
	return cmp.Or(err, failed.any())
}

// unwritten are the ids that could not be written down, with the reason.
type unwritten map[string]error

// any returns one of the reasons, or nil. That there was no time comes first: of others it may be that the database
// takes what is not of these devices.
func (u unwritten) any() (reason error) {
	for _, reason = range u {
		if errors.Is(reason, errSlowDisk) || errors.Is(reason, context.DeadlineExceeded) {
			break
		}
	}
	return reason
}

// flush writes down all that has changed, within a time, in one step. If that fails, each address is a step of its own:
// a record that the store refuses keeps no other from being written. What fails stays to be written. err says that
// nothing was tried, because ctx has ended while others were writing.
func (b *Book) flush(ctx context.Context, limit time.Duration) (failed unwritten, err error) {
	select {
	case b.saving <- struct{}{}:
		defer func() { <-b.saving }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b.mu.Lock()
	ids := slices.Collect(maps.Keys(b.dirty))
	clear(b.dirty)
	b.mu.Unlock()
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlowDisk)
	defer cancel()
	whole := b.o.Records.Commit(ctx, b.change(ids))
	if whole == nil {
		return nil, nil
	}
	failed = unwritten{}
	for _, some := range byAddress(ids) {
		why := whole
		if len(some) < len(ids) {
			if why = context.Cause(ctx); why == nil {
				why = b.o.Records.Commit(ctx, b.change(some))
			}
		}
		if why == nil {
			continue
		}
		for _, id := range some {
			failed[id] = why
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range failed {
		b.dirty[id] = true
	}
	return failed, nil
}

var errSlowDisk = errors.New("the disk took too long")

// byAddress groups ids, because the records of an address change together.
func byAddress(ids []string) map[string][]string {
	groups := map[string][]string{}
	for _, id := range ids {
		groups[AddressOf(id)] = append(groups[AddressOf(id)], id)
	}
	return groups
}

// change returns what is to be written of some ids, as it is now.
func (b *Book) change(ids []string) (c Change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		e := b.byID[id]
		if e == nil {
			c.Drop = append(c.Drop, id)
			continue
		}
		e.noted = e.Seen
		c.Save = append(c.Save, e.Record)
		if p := b.desk.byID[id]; p != nil {
			c.Open = append(c.Open, *p)
		} else {
			c.Settled = append(c.Settled, id)
		}
	}
	return c
}

// touch has a record written down soon, as it is then. The caller holds mu.
func (b *Book) touch(id string) {
	b.dirty[id] = true
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// keep puts an entry under its id, in the place of another one, and reports whether it
// could. When there are too many, one that is worth less makes room, if there is any.
// The caller holds mu.
func (b *Book) keep(e *entry) bool {
	if b.byID[e.ID] == nil && len(b.byID) >= maxRecords && !b.makeRoom() {
		if b.notices.due("", time.Now()) {
			b.log.Warn("no more devices can be known; forget some", "records", maxRecords)
		}
		return false
	}
	b.byID[e.ID] = e
	b.touch(e.ID)
	return true
}

// makeRoom drops the entry that was away longest, of those that are worth least. Those
// that were accepted or refused by a person, are known for a day, or have used a token of their own, stay.
func (b *Book) makeRoom() bool {
	var least *entry
	for _, e := range b.byID {
		if least == nil || e.worth() < least.worth() || e.worth() == least.worth() && e.Seen.Before(least.Seen) {
			least = e
		}
	}
	if least.worth() >= stays {
		return false
	}
	b.drop(least.ID, ErrCodeExpired)
	return true
}

// stays is the worth of entries that never make room.
const stays = 3

// worth orders entries by how little they may be dropped.
func (e *entry) worth() int {
	switch {
	case e.State == Newcomer:
		return 0
	case e.State == Stranger:
		return 1
	case e.State.known() && !e.regular() && e.Tokens.Used == "":
		return 2
	default:
		return stays
	}
}

// regular reports whether the pair was accepted by a person, or is known for a day.
func (e *entry) regular() bool {
	return e.State.known() && (e.By != byNobody || e.Seen.Sub(e.Since) >= newFor)
}

// drop forgets an entry and its code. The caller holds mu.
func (b *Book) drop(id string, why error) {
	delete(b.byID, id)
	b.desk.settle(id, why)
	b.touch(id)
}

// expire forgets the codes of devices that have stopped asking. The caller holds mu.
func (b *Book) expire(now time.Time) {
	for _, id := range b.desk.expire(now) {
		if e := b.byID[id]; e != nil && e.State == Newcomer {
			delete(b.byID, id)
		}
		b.touch(id)
	}
}

// notices limits the lines in the log about what strangers do: for each device one
// in a while, and so many in all.
type notices map[string]time.Time

const (
	noticeEvery = 10 * time.Minute
	maxNotices  = 64 // in that time
)

// due reports whether there may be a line about a device now, and counts it.
func (n notices) due(id string, now time.Time) bool {
	if last, ok := n[id]; ok && now.Sub(last) < noticeEvery {
		return false
	}
	for other, last := range n {
		if now.Sub(last) >= noticeEvery {
			delete(n, other)
		}
	}
	if len(n) >= maxNotices {
		return false
	}
	n[id] = now
	return true
}
