package local

import (
	"context"
	"sync"
)

// soundBuffer carries sound from an engine, which must not wait, to a reader, which
// may be slow. It holds at most the sound of one unit (see maxHan and maxLatin:
// about 15 s). One goroutine puts and ends, one takes.
type soundBuffer struct {
	mu    sync.Mutex
	pcm   []int16 // guarded by mu
	ended bool    // guarded by mu
	err   error   // guarded by mu
	ready chan struct{}
}

func newSoundBuffer() *soundBuffer {
	return &soundBuffer{ready: make(chan struct{}, 1)}
}

func (b *soundBuffer) put(pcm []int16) {
	if len(pcm) == 0 {
		return
	}
	b.mu.Lock()
	b.pcm = append(b.pcm, pcm...)
	b.mu.Unlock()
	b.wake()
}

// end is the last call of the engine's side.
func (b *soundBuffer) end(err error) {
	b.mu.Lock()
	b.ended, b.err = true, err
	b.mu.Unlock()
	b.wake()
}

func (b *soundBuffer) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take waits for sound and takes all there is. After the last of it, it gives
// nil and the engine's error.
func (b *soundBuffer) take(ctx context.Context) ([]int16, error) {
	for {
		b.mu.Lock()
		pcm, ended, err := b.pcm, b.ended, b.err
		b.pcm = nil
		b.mu.Unlock()
		if len(pcm) > 0 {
			return pcm, nil
		}
		if ended {
			return nil, err
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
