package iot

import "xiaozhi/internal/lru"

const (
	defaultCached  = 1000     // devices that a Cache knows unless told otherwise
	maxCachedBytes = 32 << 20 // of all of them, each counted at its most
)

// Cache keeps what devices have said of their things beyond their connections.
// It may be used at the same time; make it with [NewCache]. A nil cache knows
// nothing and keeps nothing.
type Cache struct{ homes *lru.Cache[string, *home] }

// NewCache makes an empty cache for a number of devices; 0 means 1000. One
// device more, or more than 32 MiB, and the one that was used least recently is
// forgotten.
func NewCache(devices int) *Cache {
	if devices <= 0 {
		devices = defaultCached
	}
	return &Cache{lru.New[string, *home](devices, maxCachedBytes)}
}

// get returns what is known of a device, or nil.
func (c *Cache) get(deviceID string) *home {
	if c == nil || deviceID == "" {
		return nil
	}
	h, _ := c.homes.Get(deviceID)
	return h
}

// put keeps what is known of a device.
func (c *Cache) put(deviceID string, h *home) {
	if c != nil && deviceID != "" {
		c.homes.Put(deviceID, h, h.weight())
	}
}
