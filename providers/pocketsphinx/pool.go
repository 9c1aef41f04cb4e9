package pocketsphinx

import (
	"context"
	"log/slog"
	"sync"
)

// pool lends a fixed number of decoders. Callers are served first come, first
// served; the pool never grows. A decoder is loaded when it is first lent.
type pool struct {
	lib   *library
	model model
	log   *slog.Logger
	free  chan *decoder // those that are not lent, nil until it is loaded; its size is their number

	mu      sync.Mutex // of giving back
	retired bool
}

func newPool(lib *library, m model, size int, log *slog.Logger) *pool {
	p := &pool{lib: lib, model: m, log: log, free: make(chan *decoder, size)}
	for range size {
		p.free <- nil
	}
	return p
}

// acquire waits for a decoder, or for ctx. The decoder must be released.
func (p *pool) acquire(ctx context.Context) (*decoder, error) {
	select {
	case d := <-p.free:
		if d != nil {
			return d, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d, err := newDecoder(p.lib, p.model, p.log)
	if err != nil {
		p.free <- nil
		return nil, err
	}
	return d, nil
}

// release takes back a decoder of acquire.
func (p *pool) release(d *decoder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired {
		d.close()
		d = nil
	}
	p.free <- d // it has the room
}

// retire frees each decoder as soon as nobody has it, from now on.
func (p *pool) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for range len(p.free) { // nobody puts any in meanwhile
		select {
		case d := <-p.free:
			if d != nil {
				d.close()
			}
			p.free <- nil
		default: // the rest was lent just now
		}
	}
}

// close waits until every decoder was given back, and frees them all.
func (p *pool) close() {
	for range cap(p.free) {
		if d := <-p.free; d != nil {
			d.close()
		}
	}
}
