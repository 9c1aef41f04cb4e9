package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// Trouble is a kind of thing that is wrong with the database.
type Trouble string

// What can be wrong.
const (
	TroubleFull    Trouble = "full"    // the disk has no room
	TroubleBroken  Trouble = "broken"  // the file is damaged
	TroubleSlow    Trouble = "slow"    // a write took longer than a second
	TroubleFailing Trouble = "failing" // the last write failed in another way
	TroubleNoWAL   Trouble = "no-wal"  // the file is on a network file system
	TroubleDropped Trouble = "dropped" // turns were not written
	TroubleClock   Trouble = "clock"   // what is kept is of a later time than it is
	TroubleLarge   Trouble = "large"   // the file has a GiB
)

// slowWrite is the time from which on a write is slow.
const slowWrite = time.Second

// Bounds of what is no trouble yet.
const (
	clockBack = time.Minute
	largeFile = 1 << 30
)

// troubleShown is the time for which something that is over is still told.
const troubleShown = 5 * time.Minute

// Health tells how the database does. Its zero value is that of a database that does well.
type Health struct {
	Engine  Engine
	Path    string    // of SQLite's file
	Network string    // network file system on which it lies; "": none
	Trouble []Trouble // the worst first; empty: all is well
	Err     error     // of the last write that failed, if it was the last one
	Since   time.Time // since when writes fail
	Slowest time.Duration
	Log     LogStats
}

// health collects what [Health] tells.
type health struct {
	network string
	clock   func() time.Time

	mu      sync.Mutex
	err     error
	since   time.Time
	slowAt  time.Time
	slowest time.Duration          // of the last minutes
	going   map[*writing]time.Time // when what is being written began
	newest  time.Time              // of the turns that are kept
	size    int64                  // of the file
}

// writing is a transaction that goes on.
type writing struct{ _ byte }

// begin takes in the begin of a transaction, for [health.wrote].
func (h *health) begin() *writing {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.going == nil {
		h.going = map[*writing]time.Time{}
	}
	w := &writing{}
	h.going[w] = h.clock()
	return w
}

// keeps takes in that turns of a time are kept, and how large the file is.
func (h *health) keeps(newest time.Time, size int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest, h.size = latest(h.newest, newest), size
}

// wrote takes in the end of a transaction.
func (h *health) wrote(w *writing, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock()
	took := now.Sub(h.going[w])
	delete(h.going, w)
	switch {
	case err == nil:
		h.err, h.since = nil, time.Time{}
	case isOurs(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	default:
		if h.err == nil {
			h.since = now
		}
		h.err = err
	}
	if now.Sub(h.slowAt) > troubleShown {
		h.slowest = 0
	}
	if took >= slowWrite {
		h.slowAt, h.slowest = now, max(h.slowest, took)
	}
}

// isOurs reports whether an error is an answer, and not a failure.
func isOurs(err error) bool {
	if _, ok := errors.AsType[refusal](err); ok {
		return true
	}
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrConflict) || errors.Is(err, ErrFull) || errors.Is(err, errData)
}

// report fills in what is known here.
func (h *health) report(r *Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Network, r.Err, r.Since = h.network, h.err, h.since
	if h.err != nil {
		r.Trouble = append(r.Trouble, troubleOf(h.err))
	}
	now := h.clock()
	if h.slowest > 0 && now.Sub(h.slowAt) <= troubleShown {
		r.Slowest = h.slowest
	}
	for _, began := range h.going { // a disk may never answer
		if took := now.Sub(began); took >= slowWrite {
			r.Slowest = max(r.Slowest, took)
		}
	}
	if r.Slowest > 0 {
		r.Trouble = append(r.Trouble, TroubleSlow)
	}
	if h.newest.Sub(now) > clockBack {
		r.Trouble = append(r.Trouble, TroubleClock)
	}
	if h.size >= largeFile {
		r.Trouble = append(r.Trouble, TroubleLarge)
	}
	if h.network != "" {
		r.Trouble = append(r.Trouble, TroubleNoWAL)
	}
}

// Health tells how the database does.
func (s *Store) Health() Health {
	r := Health{Engine: s.db.engine, Path: s.db.path, Log: s.Log.Stats()}
	s.db.health.report(&r)
	if at := r.Log.DroppedAt; !at.IsZero() && s.db.clock().Sub(at) <= troubleShown {
		r.Trouble = append(r.Trouble, TroubleDropped)
	}
	return r
}

// Check reads the whole database and returns what is wrong with it. It takes as long as reading the file does.
// PostgreSQL checks itself.
func (s *Store) Check(ctx context.Context) error {
	if s.db.engine != SQLite {
		return nil
	}
	var said string
	if err := s.db.read.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return fmt.Errorf("%w: %s", errUnsound, said)
	}
	return nil
}

// NoRoom reports whether an error says that a disk is full: that of the database or of a file.
func NoRoom(err error) bool {
	if err == nil {
		return false
	}
	trouble, _ := meaning(err)
	return trouble == TroubleFull || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
