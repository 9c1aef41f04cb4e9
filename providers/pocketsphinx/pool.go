package pocketsphinx

import (
	"context"
	"log/slog"
	"sync"
)

// pool lends a fixed number of decoders. Callers are served first come, first
// served; the pool never grows. A decoder is loaded only when one is lent while
// nobody gave back a loaded one: who speaks alone has the same decoder each time.
type pool struct {
	lib   *library
	model model
	log   *slog.Logger
	free  chan struct{} // one for each decoder that is not lent, loaded or not; its size is the number of decoders

	mu      sync.Mutex // of what follows
	loaded  []*decoder // those that are not lent, given back last at the end
	retired bool
}

func newPool(lib *library, m model, size int, log *slog.Logger) *pool {
	p := &pool{lib: lib, model: m, log: log, free: make(chan struct{}, size)}
	for range size {
		p.free <- struct{}{}
	}
	return p
}

// acquire waits for a decoder, or for ctx. The decoder must be released.
func (p *pool) acquire(ctx context.Context) (*decoder, error) {
	select {
	case <-p.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if d := p.last(); d != nil {
		return d, nil
	}
	d, err := newDecoder(p.lib, p.model, p.log)
	if err != nil {
		p.free <- struct{}{}
		return nil, err
	}
	return d, nil
}

// last takes the decoder that was given back last; nil if none that is free is loaded.
func (p *pool) last() *decoder {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.loaded)
	if n == 0 {
		return nil
	}
	d := p.loaded[n-1]
	p.loaded = p.loaded[:n-1]
	return d
}

// release takes back a decoder of acquire.
func (p *pool) release(d *decoder) {
	p.mu.Lock()
	if p.retired {
		d.close()
	} else {
		p.loaded = append(p.loaded, d)
	}
	p.mu.Unlock()
	p.free <- struct{}{} // it has the room
}

// retire frees each decoder as soon as nobody has it, from now on.
func (p *pool) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	p.unload()
}

// close waits until every decoder was given back, and frees them all.
func (p *pool) close() {
	for range cap(p.free) {
		<-p.free
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unload()
}

// unload frees the decoders that nobody has. It is called with the mutex held.
func (p *pool) unload() {
	for _, d := range p.loaded {
		d.close()
	}
	p.loaded = nil
}
