package sherpa

import (
	"context"
	"sync"
	"time"

	"xiaozhi/providers/sherpa/internal/capi"
)

// loader holds one model for all that is heard, and a bounded number of users at a time. It is loaded when it
// is first needed.
type loader[T interface{ Free() }] struct {
	load  func(context.Context) (T, error)
	slots chan struct{} // taken by those who hear
	turn  chan struct{} // taken by who loads

	mu      sync.Mutex
	loaded  *T // nil: not loaded
	users   int
	retired bool
}

func newLoader[T interface{ Free() }](size int, load func(context.Context) (T, error)) *loader[T] {
	return &loader[T]{load: load, slots: make(chan struct{}, size), turn: make(chan struct{}, 1)}
}

// acquire waits for a place, first come, first served, and for the model. It must be released.
func (l *loader[T]) acquire(ctx context.Context) (model T, err error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return model, ctx.Err()
	}
	if model, err = l.get(ctx); err != nil {
		<-l.slots
	}
	return model, err
}

// get returns the model, and loads it if need be.
func (l *loader[T]) get(ctx context.Context) (model T, err error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return model, ctx.Err()
	}
	defer func() { <-l.turn }()
	l.mu.Lock()
	loaded := l.loaded
	if loaded != nil {
		l.users++
	}
	l.mu.Unlock()
	if loaded != nil {
		return *loaded, nil
	}
	if model, err = l.load(ctx); err != nil {
		return model, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = &model
	l.users++
	return model, nil
}

// release gives back what acquire lent.
func (l *loader[T]) release() {
	l.mu.Lock()
	l.users--
	l.sweep()
	l.mu.Unlock()
	<-l.slots
}

// retire frees the model as soon as nobody uses it, from now on.
func (l *loader[T]) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	l.sweep()
}

// sweep frees a retired model that nobody uses. mu is held.
func (l *loader[T]) sweep() {
	if l.retired && l.users == 0 && l.loaded != nil {
		(*l.loaded).Free()
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
