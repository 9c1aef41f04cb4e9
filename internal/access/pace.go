package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/account"
	"xiaozhi/internal/lru"
)

// How often a person may have one thing, as a device, do something.
const (
	actEvery = 3 * time.Second
	Burst    = 10   // at once
	maxPairs = 4096 // of people and things of which that is remembered
)

// Pace counts what people have things do. Its methods may be called at the same time.
type Pace struct {
	mu sync.Mutex
	of *lru.Cache[string, *rate.Limiter]
}

// NewPace returns one in which nobody has done anything.
func NewPace() *Pace { return &Pace{of: lru.New[string, *rate.Limiter](maxPairs, 0)} }

// Often counts one act of a person with a thing, and reports what is too much.
func (p *Pace) Often(person, thing string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := person + " " + thing
	limiter, ok := p.of.Get(key)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(actEvery), Burst)
		p.of.Put(key, limiter, 0)
	}
	if limiter.Allow() {
		return nil
	}
	return &account.TooOftenError{Wait: actEvery}
}
