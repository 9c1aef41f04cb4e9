package iot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

const (
	maxStateText   = 1 << 10  // bytes of a property's text that are kept
	defaultCached  = 1000     // devices that a Cache knows unless told otherwise
	maxCachedBytes = 32 << 20 // of all of them, each counted at its most
)

// Cache keeps what devices have said of their things beyond their connections.
// It may be used at the same time; make it with [NewCache].
type Cache struct{ homes *lru.Cache[string, *home] }

// Forget drops what is kept of a device.
func (c *Cache) Forget(deviceID string) { c.homes.Remove(deviceID) }

// NewCache makes an empty cache for a number of devices; 0 means 1000. With one more, or
// more than 32 MiB, the device that was used least recently is forgotten.
func NewCache(devices int) *Cache {
	if devices <= 0 {
		devices = defaultCached
	}
	return &Cache{lru.New[string, *home](devices, maxCachedBytes)}
}

// home holds one device's things and their states. It outlives connections where
// there is a cache. All methods may be called at the same time.
type home struct {
	mu      sync.Mutex
	kinds   map[string]mcp.Kind // overrides
	things  []*knownThing       // in the order of their first description
	tools   []mcp.Tool
	targets map[string]target
}

// knownThing is a thing and its state.
type knownThing struct {
	*thing
	stale bool // not described on the present connection
	state map[string]reading
}

// reading is the last report of a property.
type reading struct {
	value any  // bool, int64, float64 or string
	stale bool // of an earlier connection
}

// target is the property or the method of a thing that a tool stands for.
type target struct {
	thing    string
	property string  // of a reader
	method   *method // nil: a reader
	kind     mcp.Kind
	change   change // that a control should cause
}

// report is one thing's state as it came, and what it changed.
type report struct {
	thing   string
	state   map[string]json.RawMessage
	known   bool           // the thing is one that was described
	changed map[string]any // values that are new
}

// find returns the thing of that name, or nil. The caller holds mu.
func (h *home) find(name string) *knownThing {
	i := slices.IndexFunc(h.things, func(k *knownThing) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return h.things[i]
}

// knows reports whether a thing was described just so before.
func (h *home) knows(th *thing) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.find(th.name)
	return old != nil && old.same(th)
}

// describe adds a thing, or replaces the one of its name; what was reported of
// properties that are still there stays.
func (h *home) describe(th *thing) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.find(th.name)
	bytes, tools, count := th.bytes, len(th.properties)+len(th.methods), 1
	for _, k := range h.things {
		if k != old {
			bytes, tools, count = bytes+k.bytes, tools+len(k.properties)+len(k.methods), count+1
		}
	}
	switch {
	case count > maxThings:
		return fmt.Errorf("thing %q is one more than %d", th.name, maxThings)
	case tools > mcp.MaxTools:
		return fmt.Errorf("thing %q makes more than %d tools", th.name, mcp.MaxTools)
	case bytes > maxHome:
		return fmt.Errorf("thing %q makes more than %d bytes of descriptors", th.name, maxHome)
	}
	if old == nil {
		old = &knownThing{state: make(map[string]reading)}
		h.things = append(h.things, old)
	}
	old.thing, old.stale = th, false
	maps.DeleteFunc(old.state, func(name string, _ reading) bool { return !th.has(name) })
	h.rebuild()
	return nil
}

// merge takes a report in, property by property, and notes in it what changed.
// The error names members that were left out; the others count.
func (h *home) merge(r *report) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.find(r.thing)
	if k == nil {
		return fmt.Errorf("thing %.64q was not described", r.thing)
	}
	r.known, r.changed = true, make(map[string]any)
	var odd error
	for _, name := range slices.Sorted(maps.Keys(r.state)) {
		if !k.has(name) {
			odd = fmt.Errorf("thing %q has no property %.64q", r.thing, name)
			continue
		}
		value, err := readValue(r.state[name])
		if err != nil {
			odd = fmt.Errorf("property %q of thing %q: %w", name, r.thing, err)
			continue
		}
		if old, ok := k.state[name]; !ok || old.value != value {
			r.changed[name] = value
		}
		k.state[name] = reading{value: value}
	}
	return odd
}

// properties are the arguments that have the name of a property of the thing.
func (h *home) properties(thing string, arguments map[string]any) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.find(thing)
	if k == nil {
		return nil
	}
	var out []string
	for _, p := range k.properties {
		if _, ok := arguments[p.name]; ok {
			out = append(out, p.name)
		}
	}
	return out
}

// known returns the values of those of the properties that were reported on this connection.
func (h *home) known(thing string, properties map[string]any) map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	values := make(map[string]any, len(properties))
	k := h.find(thing)
	if k == nil {
		return values
	}
	for name := range properties {
		if r, ok := k.state[name]; ok && !r.stale {
			values[name] = r.value
		}
	}
	return values
}

// read is the result of a property's tool. A value that the device has not
// reported, or not on this connection, comes with a note that says so.
func (h *home) read(to target, language string) map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	result, remark := map[string]any{to.property: nil}, "note"
	if to.property == remark {
		remark = "remark"
	}
	var last reading
	known := false
	if k := h.find(to.thing); k != nil {
		last, known = k.state[to.property]
	}
	if result[to.property] = last.value; !known {
		result[remark] = message.In(text.Lang(language), "iot/unknown")
	} else if last.stale {
		result[remark] = message.In(text.Lang(language), "iot/stale")
	}
	return result
}

// states are the last reports that still hold, by thing and property.
func (h *home) states() map[string]map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make(map[string]map[string]any, len(h.things))
	for _, k := range h.things {
		values := make(map[string]any, len(k.state))
		for name, r := range k.state {
			if !r.stale {
				values[name] = r.value
			}
		}
		if !k.stale {
			out[k.name] = values
		}
	}
	return out
}

// setKinds puts other overrides in the place of those there are.
func (h *home) setKinds(kinds map[string]mcp.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !maps.Equal(h.kinds, kinds) {
		h.kinds = kinds
		h.rebuild()
	}
}

// markStale says that the device has a new connection and must say all again.
func (h *home) markStale() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.things {
		k.stale = true
		for name, r := range k.state {
			k.state[name] = reading{value: r.value, stale: true}
		}
	}
}

// dropStale forgets the things that were not described again, and names them.
func (h *home) dropStale() (gone []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.things {
		if k.stale {
			gone = append(gone, k.name)
		}
	}
	if len(gone) > 0 {
		h.things = slices.DeleteFunc(h.things, func(k *knownThing) bool { return k.stale })
		h.rebuild()
	}
	return gone
}

// size returns the number of things.
func (h *home) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.things)
}

// weight is about how many bytes it may come to take: descriptors, the tools
// made of them, and texts for states.
func (h *home) weight() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, k := range h.things {
		n += 4*k.bytes + maxStateText*len(k.properties)
	}
	return n
}

// list are the tools. The caller owns the slice.
func (h *home) list() []mcp.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.tools)
}

// target finds what a tool's name stands for.
func (h *home) target(name string) (target, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to, ok := h.targets[name]
	return to, ok
}
