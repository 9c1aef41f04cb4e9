package talks

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// UndoTime is how long a deletion on a page can be taken back.
const UndoTime = 20 * time.Second

// Bin holds what people have deleted on pages, until the time to take it back is over. Its methods may be called at the same time.
type Bin struct {
	talks *Talks

	mu     sync.Mutex
	all    map[string]*waste // by the id of a talk or a turn
	closed bool
}

// waste is one deletion that can still be taken back.
type waste struct {
	timer   *time.Timer
	forGood func()
}

// Delete deletes a talk, or a turn of it, once the time to take it back is over. The audit keeps what comes of it.
func (b *Bin) Delete(r *http.Request, talk, turn string) {
	r = r.WithContext(context.WithoutCancel(r.Context())) // it outlives the request
	if turn != "" {
		b.put(turn, func() { _ = b.talks.DeleteTurn(r, turn) })
		return
	}
	b.put(talk, func() { _ = b.talks.DeleteTalk(r, talk) })
}

func (b *Bin) put(id string, forGood func()) {
	b.mu.Lock()
	closed := b.closed
	if !closed && b.all[id] == nil {
		b.all[id] = &waste{time.AfterFunc(UndoTime, func() { b.end(id) }), forGood}
	}
	b.mu.Unlock()
	if closed {
		forGood()
	}
}

// take takes what has an id out, if it is still there.
func (b *Bin) take(id string) *waste {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[id]
	delete(b.all, id)
	if one != nil {
		one.timer.Stop()
	}
	return one
}

// end deletes what has an id for good.
func (b *Bin) end(id string) {
	if one := b.take(id); one != nil {
		one.forGood()
	}
}

// Has reports whether somebody has deleted a talk or a turn, and could still take it back.
func (b *Bin) Has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[id] != nil
}

// Undo takes the deletion of a talk or a turn back. Not ok: it is gone for good, or was not deleted.
func (b *Bin) Undo(id string) (ok bool) { return b.take(id) != nil }

// Close deletes for good what somebody has deleted; there is no undoing from then on.
func (b *Bin) Close() {
	b.mu.Lock()
	b.closed = true
	var ids []string
	for id := range b.all {
		ids = append(ids, id)
	}
	b.mu.Unlock()
	for _, id := range ids {
		b.end(id)
	}
}
