package pocketsphinx

import (
	"context"
	"log/slog"
	"slices"
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
	if d := spare.take(p.lib, p.model); d != nil {
		d.log = p.log
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
	for _, d := range p.loaded {
		d.close()
	}
	p.loaded = nil
}

// close waits until every decoder was given back, and frees them all, but for those that are spared.
func (p *pool) close() {
	for range cap(p.free) {
		<-p.free
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.loaded {
		spare.put(d)
	}
	p.loaded = nil
}

// spare keeps decoders that no recogniser has any more.
var spare stock

// stock has decoders for recognisers to come.
type stock struct {
	mu   sync.Mutex
	room int // for so many
	kept []*decoder
}

// Spare keeps so many decoders of recognisers that are closed, from now on and for as long as the process lasts, and gives
// them to recognisers that are opened later. A process that opens and closes many, as tests do, loads fewer by that.
func Spare(decoders int) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	spare.room = decoders
}

// put keeps a decoder, or frees it where there is no room.
func (s *stock) put(d *decoder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == s.room {
		d.close()
		return
	}
	s.kept = append(s.kept, d)
}

// take gives a decoder that this library loaded from that model; nil if there is none.
func (s *stock) take(lib *library, m model) *decoder {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.kept, func(d *decoder) bool { return d.dictation.lib.file == lib.file && d.model.is(m) })
	if i < 0 {
		return nil
	}
	d := s.kept[i]
	s.kept = slices.Delete(s.kept, i, i+1)
	return d
}
