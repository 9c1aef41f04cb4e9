package listen

import (
	"context"
	"sync"
)

// Book numbers the utterances of a conversation and holds what ends the work for
// each. Its zero value is ready. Its methods may be called at the same time.
type Book struct {
	mu      sync.Mutex
	last    uint64
	cancel  map[uint64]context.CancelCauseFunc
	garbled int64 // packets that are not Opus
}

// add takes in an utterance; a nil cancel means that nothing is done for it.
func (b *Book) add(cancel context.CancelCauseFunc) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	if cancel != nil {
		if b.cancel == nil {
			b.cancel = map[uint64]context.CancelCauseFunc{}
		}
		b.cancel[b.last] = cancel
	}
	return b.last
}

// Release ends all that is done for an utterance.
func (b *Book) Release(id uint64, cause error) {
	b.mu.Lock()
	cancel := b.cancel[id]
	delete(b.cancel, id)
	b.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// garble counts a packet that is not Opus, and gives how many there were.
func (b *Book) garble() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.garbled++
	return b.garbled
}
