package sherpa

import (
	"context"
	"sync"
	"time"

	"xiaozhi/providers/sherpa/internal/capi"
)

// loader holds one recogniser for all utterances, and a bounded number of them at a time. It is loaded when it
// is first needed.
type loader struct {
	load  func(context.Context) (hearing, error)
	slots chan struct{} // taken by those who hear
	turn  chan struct{} // taken by who loads

	mu      sync.Mutex
	loaded  hearing // nil: not loaded
	users   int
	retired bool
}

func newLoader(size int, load func(context.Context) (hearing, error)) *loader {
	return &loader{load: load, slots: make(chan struct{}, size), turn: make(chan struct{}, 1)}
}

// acquire waits for a place, first come, first served, and for the model. It must be released.
func (l *loader) acquire(ctx context.Context) (hearing, error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h, err := l.get(ctx)
	if err != nil {
		<-l.slots
	}
	return h, err
}

// get returns the model, and loads it if need be.
func (l *loader) get(ctx context.Context) (hearing, error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-l.turn }()
	l.mu.Lock()
	h := l.loaded
	if h != nil {
		l.users++
	}
	l.mu.Unlock()
	if h != nil {
		return h, nil
	}
	h, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = h
	l.users++
	return h, nil
}

// release gives back what acquire lent.
func (l *loader) release() {
	l.mu.Lock()
	l.users--
	l.sweep()
	l.mu.Unlock()
	<-l.slots
}

// retire frees the model as soon as nobody uses it, from now on.
func (l *loader) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	l.sweep()
}

// sweep frees a retired model that nobody uses. mu is held.
func (l *loader) sweep() {
	if l.retired && l.users == 0 && l.loaded != nil {
		l.loaded.Free()
		l.loaded = nil
	}
}

// voices lends a fixed number of voices, each of which is loaded when it is first lent. Callers are served first
// come, first served.
type voices struct {
	load func(context.Context) (*capi.Voice, error)
	free chan *capi.Voice // those that are not lent, nil until loaded; its size is their number

	mu      sync.Mutex // of giving back
	retired bool
}

func newVoices(size int, load func(context.Context) (*capi.Voice, error)) *voices {
	p := &voices{load: load, free: make(chan *capi.Voice, size)}
	for range size {
		p.free <- nil
	}
	return p
}

// acquire waits for a voice, or for ctx. It must be released.
func (p *voices) acquire(ctx context.Context) (*capi.Voice, error) {
	select {
	case v := <-p.free:
		if v != nil {
			return v, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v, err := p.load(ctx)
	if err != nil {
		p.free <- nil
	}
	return v, err
}

// release takes back a voice of acquire.
func (p *voices) release(v *capi.Voice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired {
		v.Free()
		v = nil
	}
	p.free <- v // it has the room
}

// retire frees each voice as soon as nobody has it, from now on.
func (p *voices) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for range len(p.free) { // nobody puts any in meanwhile
		select {
		case v := <-p.free:
			if v != nil {
				v.Free()
			}
			p.free <- nil
		default: // the rest was lent just now
		}
	}
}

// tryTime is what a model may take to be loaded elsewhere.
const tryTime = 2 * time.Minute

// trial is the loading of a model elsewhere, which happens once.
type trial struct {
	try func(ctx context.Context) error

	mu   sync.Mutex
	done bool
}

// run tries once; what failed is tried again the next time.
func (t *trial) run(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.try == nil || t.done {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	if err := t.try(ctx); err != nil {
		return err
	}
	t.done = true
	return nil
}
