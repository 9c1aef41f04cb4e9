package mcp

import "sync"

// defaultCached is how many devices a ThingCache knows unless told otherwise.
const defaultCached = 1000

// ThingCache keeps what devices have said of their things beyond their
// connections: at most about 0.5 MiB of the worst of them, a few KiB of an
// ordinary one. A cache may be used at the same time; make it with NewThingCache.
type ThingCache struct {
	limit int

	mu    sync.Mutex
	clock uint64
	homes map[string]*cachedHome
}

// cachedHome is what is known of a device and when it was used last.
type cachedHome struct {
	home *thingHome
	used uint64
}

// NewThingCache makes an empty cache for a number of devices; 0 means 1000. One
// device more, and the one that was met longest ago is forgotten.
func NewThingCache(devices int) *ThingCache {
	if devices <= 0 {
		devices = defaultCached
	}
	return &ThingCache{limit: devices, homes: make(map[string]*cachedHome)}
}

// get is what is known of a device; nil: nothing. A nil cache knows nothing.
func (c *ThingCache) get(deviceID string) *thingHome {
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
func (c *ThingCache) put(deviceID string, h *thingHome) {
	if c == nil || deviceID == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	if found := c.homes[deviceID]; found != nil {
		found.home, found.used = h, c.clock
		return
	}
	if len(c.homes) >= c.limit {
		c.forgetOldest()
	}
	c.homes[deviceID] = &cachedHome{h, c.clock}
}

// forgetOldest makes room. The caller holds mu.
func (c *ThingCache) forgetOldest() {
	oldest := ""
	for id, h := range c.homes {
		if oldest == "" || h.used < c.homes[oldest].used {
			oldest = id
		}
	}
	delete(c.homes, oldest)
}
