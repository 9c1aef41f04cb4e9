// Package catalog holds what the gateway offers, and shows each caller its part.
//
// A [Registry] holds tools, resources and prompts, in groups called streams. A
// [View] is the part of it that one [Caller] sees, of one stream or of all; it has
// an MCP server of its own (the official SDK, imported as sdk), so that nothing
// can be reached through it that it does not show. A [Runner] runs tools within
// the limits of the gateway and leaves a line in the log for each call.
package catalog

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/router"
)

// Registry holds what is offered outward: tools, resources and prompts, each in a
// stream or in none. It accepts them at any time; connected clients are told.
//
// The first of a name keeps it, in the order of the parts, except that what was
// added by hand replaces what had its name by hand before. All methods may be
// called at the same time.
type Registry struct {
	mu      sync.Mutex
	gate    router.Gate
	parts   map[string]*Part // by source
	now     *snapshot
	changed func(*snapshot) // tells the views, in the order of the changes; called with mu held
}

// snapshot is all that is offered at one moment. It does not change.
type snapshot struct {
	all     map[key]item
	of      map[string]map[key]item // by stream; "" is that of what is in none
	streams []string                // sorted
}

// The names of the parts, in the order in which names of tools are given away.
const (
	PartCore  = "core"
	PartLocal = "local" // this server's own tools
	partHand  = "hand"  // registered by hand
	PartFiles = "files" // declarative tools
	// Devices have "device:<id>" each.
	PartShared = "~external" // tools of other servers, behind the devices
)

// NewRegistry makes an empty registry, which shows no tool that gate hides.
func NewRegistry(gate router.Gate) *Registry {
	return &Registry{gate: gate, parts: map[string]*Part{}, now: &snapshot{}}
}

// Add offers a tool, or replaces the one of that name that was added by hand
// before. The error says what is wrong with it.
func (r *Registry) Add(t Tool) error {
	e, err := t.entry()
	if err != nil {
		return fmt.Errorf("register tool: %w", err)
	}
	r.byHand(e, e.key)
	return nil
}

// Remove takes tools away that were added by hand, by their full names.
func (r *Registry) Remove(names ...string) {
	for _, name := range names {
		r.byHand(nil, key{kindTool, name})
	}
}

// AddResource offers a resource in a stream ("": in none), or replaces it.
func (r *Registry) AddResource(stream string, def *sdk.Resource, read sdk.ResourceHandler) {
	x := &resource{place{key{kindResource, def.URI}, stream}, def, read, nil}
	r.byHand(x, x.key)
}

// AddResourceTemplate offers a template of resources, or replaces it.
func (r *Registry) AddResourceTemplate(stream string, def *sdk.ResourceTemplate, read sdk.ResourceHandler) {
	x := &template{place{key{kindTemplate, def.URITemplate}, stream}, def, read, nil}
	r.byHand(x, x.key)
}

// AddPrompt offers a prompt in a stream ("": in none), or replaces it.
func (r *Registry) AddPrompt(stream string, def *sdk.Prompt, get sdk.PromptHandler) {
	x := &prompt{place{key{kindPrompt, def.Name}, stream}, def, get, nil, false}
	r.byHand(x, x.key)
}

// byHand puts x in place of what had its key by hand; nil: nothing.
func (r *Registry) byHand(x item, k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &Part{}
	if old := r.parts[partHand]; old != nil {
		p.items = slices.DeleteFunc(slices.Clone(old.items), func(other item) bool { return other.at().key == k })
	}
	if x != nil {
		p.items = append(p.items, x)
	}
	r.parts[partHand] = p
	r.publish()
}

// SetGate asks another gate what is hidden, from now on.
func (r *Registry) SetGate(gate router.Gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = gate
	r.publish()
}

// Set makes p what a source offers.
func (r *Registry) Set(name string, p *Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[name] = p
	r.publish()
}

// SetChanged makes parts what their sources offer, in one step, if they look
// different from before. A nil part takes that of its name away.
func (r *Registry) SetChanged(parts map[string]*Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for name, p := range parts {
		old := r.parts[name]
		switch {
		case p == nil && old == nil, p != nil && old != nil && old.same(p):
			continue
		case p == nil:
			delete(r.parts, name)
		default:
			r.parts[name] = p
		}
		changed = true
	}
	if changed {
		r.publish()
	}
}

// publish makes a new snapshot of the parts. The caller holds mu.
func (r *Registry) publish() {
	s := &snapshot{all: map[key]item{}, of: map[string]map[key]item{}}
	own := func(stream string) map[key]item {
		if s.of[stream] == nil {
			s.of[stream] = map[key]item{}
		}
		return s.of[stream]
	}
	first := []string{PartCore, PartLocal, partHand, PartFiles}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(r.parts)), func(name string) bool { return slices.Contains(first, name) })
	for _, name := range append(first, rest...) {
		p := r.parts[name]
		if p == nil {
			continue
		}
		for _, stream := range p.streams {
			own(stream)
		}
		for _, x := range p.items {
			if e, is := x.(*Entry); is && r.gate.Hides(e.tool, e.names()...) {
				continue
			}
			at, stream := x.at(), own(x.at().stream)
			if _, taken := s.all[at.key]; !taken {
				s.all[at.key], stream[at.key] = x, x
			}
		}
	}
	s.streams = slices.DeleteFunc(slices.Sorted(maps.Keys(s.of)), func(stream string) bool { return stream == "" })
	r.now = s
	if r.changed != nil {
		r.changed(s)
	}
}

// watch calls f with what is offered now, and at each change after it.
func (r *Registry) watch(f func(*snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = f
	f(r.now)
}
