package tools

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/account"
	"xiaozhi/internal/lru"
)

// How often a person may have tools called on one device, and servers tried.
const (
	actEvery = 3 * time.Second
	actBurst = 10
	maxPairs = 4096 // of people and devices of which that is remembered
)

// rates count what people have tools do. Its methods may be called at the same time.
type rates struct {
	mu sync.Mutex
	of *lru.Cache[string, *rate.Limiter]
}

func newRates() *rates { return &rates{of: lru.New[string, *rate.Limiter](maxPairs, 0)} }

// often counts one act of a person, and reports what is too much.
func (c *rates) often(person, object string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := person + " " + object
	limiter, ok := c.of.Get(key)
	if !ok {
		limiter = rate.NewLimiter(rate.Every(actEvery), actBurst)
		c.of.Put(key, limiter, 0)
	}
	if limiter.Allow() {
		return nil
	}
	return &account.TooOftenError{Wait: actEvery}
}
