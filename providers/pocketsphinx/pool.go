package pocketsphinx

import (
	"context"
	"log/slog"
)

// pool lends a fixed number of decoders. Callers are served first come, first
// served; the pool never grows. A decoder is loaded when it is first lent.
type pool struct {
	lib   *library
	model model
	log   *slog.Logger
	free  chan *slot // holds every slot that is not lent; its size is their number
}

// slot is the place of one decoder; nil until it is loaded.
type slot struct{ decoder *decoder }

func newPool(lib *library, m model, size int, log *slog.Logger) *pool {
	p := &pool{lib: lib, model: m, log: log, free: make(chan *slot, size)}
	for range size {
		p.free <- &slot{}
	}
	return p
}

// acquire waits for a decoder, or for ctx. The slot must be released.
func (p *pool) acquire(ctx context.Context) (*slot, error) {
	var s *slot
	select {
	case s = <-p.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.decoder == nil {
		d, err := newDecoder(p.lib, p.model, p.log)
		if err != nil {
			p.free <- s
			return nil, err
		}
		s.decoder = d
	}
	return s, nil
}

// release takes back a slot of acquire.
func (p *pool) release(s *slot) { p.free <- s }

// close waits until every decoder was given back, and frees them all.
func (p *pool) close() {
	for range cap(p.free) {
		if s := <-p.free; s.decoder != nil {
			s.decoder.close()
		}
	}
}
