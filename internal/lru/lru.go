// Package lru holds one bounded cache: when it is full, the entry that was used
// least recently makes room.
package lru

import (
	"container/list"
	"sync"
)

// Cache maps keys to values within a number of entries and a total weight. Make
// it with [New]. All methods may be called at the same time.
type Cache[K comparable, V any] struct {
	maxEntries, maxWeight int

	mu     sync.Mutex
	byKey  map[K]*list.Element
	order  *list.List // of *entry[K, V], the one that was used last in front
	weight int
}

type entry[K comparable, V any] struct {
	key    K
	value  V
	weight int
}

// New returns an empty cache for so many entries of so much weight in all. A
// limit of 0 or less means that there is none.
func New[K comparable, V any](entries, weight int) *Cache[K, V] {
	return &Cache[K, V]{maxEntries: entries, maxWeight: weight, byKey: make(map[K]*list.Element), order: list.New()}
}

// Get returns the value of key and counts as a use of it.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		return value, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Peek returns the value of key. It does not count as a use.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		return e.Value.(*entry[K, V]).value, true
	}
	return value, false
}

// Put sets the value of key and its weight, and drops what was used least
// recently until the limits hold. A value that is heavier than the whole cache
// may be is not kept, and the one before it is dropped.
func (c *Cache[K, V]) Put(key K, value V, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, value, weight)
}

// Update is [Cache.Put] of what f makes of the present value, the zero V if
// there is none. f must not use the cache.
func (c *Cache[K, V]) Update(key K, f func(old V) (value V, weight int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var old V
	if e := c.byKey[key]; e != nil {
		old = e.Value.(*entry[K, V]).value
	}
	value, weight := f(old)
	c.put(key, value, weight)
}

// Remove drops the value of key.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.byKey[key])
}

// Len returns the number of entries.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byKey)
}

// put is Put for a caller that holds mu.
func (c *Cache[K, V]) put(key K, value V, weight int) {
	c.drop(c.byKey[key])
	if c.maxWeight > 0 && weight > c.maxWeight {
		return
	}
	c.byKey[key] = c.order.PushFront(&entry[K, V]{key, value, weight})
	c.weight += weight
	for c.maxEntries > 0 && len(c.byKey) > c.maxEntries || c.maxWeight > 0 && c.weight > c.maxWeight {
		c.drop(c.order.Back())
	}
}

// drop removes e; nil changes nothing. The caller holds mu.
func (c *Cache[K, V]) drop(e *list.Element) {
	if e == nil {
		return
	}
	gone := c.order.Remove(e).(*entry[K, V])
	delete(c.byKey, gone.key)
	c.weight -= gone.weight
}
