package iot

import "sync"

const (
	defaultCached  = 1000     // devices that a Cache knows unless told otherwise
	maxCachedBytes = 32 << 20 // of all of them, each counted at its most
)

// Cache keeps what devices have said of their things beyond their
// connections. A cache may be used at the same time; make it with NewCache.
type Cache struct {
	limit int

	mu    sync.Mutex
	clock uint64
	bytes int
	homes map[string]*cachedHome
}

// cachedHome is what is known of a device, when it was used last, and what it
// may come to take.
type cachedHome struct {
	home  *home
	used  uint64
	bytes int
}

// NewCache makes an empty cache for a number of devices; 0 means 1000. One
// device more, or more than 32 MiB, and the one that was met longest ago is
// forgotten.
func NewCache(devices int) *Cache {
	if devices <= 0 {
		devices = defaultCached
	}
	return &Cache{limit: devices, homes: make(map[string]*cachedHome)}
}

// get is what is known of a device; nil: nothing. A nil cache knows nothing.
func (c *Cache) get(deviceID string) *home {
	if c == nil || deviceID == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.homes[deviceID]
	if found == nil {
		return nil
	}
	c.clock++
	found.used = c.clock
	return found.home
}

// put keeps what is known of a device. A nil cache keeps nothing.
func (c *Cache) put(deviceID string, h *home) {
	if c == nil || deviceID == "" {
		return
	}
	bytes := h.weight()
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.homes[deviceID]; old != nil {
		c.bytes -= old.bytes
	}
	c.clock++
	c.homes[deviceID] = &cachedHome{home: h, used: c.clock, bytes: bytes}
	c.bytes += bytes
	for len(c.homes) > c.limit || c.bytes > maxCachedBytes {
		c.forgetOldest()
	}
}

// forgetOldest makes room. The caller holds mu; there is at least one device.
func (c *Cache) forgetOldest() {
	oldest := ""
	for id, h := range c.homes {
		if oldest == "" || h.used < c.homes[oldest].used {
			oldest = id
		}
	}
	c.bytes -= c.homes[oldest].bytes
	delete(c.homes, oldest)
}
