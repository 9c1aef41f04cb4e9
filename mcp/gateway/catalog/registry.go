package catalog

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Registry holds what is offered outward: tools, resources and prompts, each in a
// stream or in none. It accepts them at any time; connected clients are told.
//
// The first of a name keeps it, in the order of the parts, except that what was
// added by hand replaces what had its name by hand before. All methods may be
// called at the same time.
type Registry struct {
	mu      sync.Mutex
	parts   map[string]*Part // by source
	now     *snapshot
	changed func(*snapshot) // tells the views, in the order of the changes; called with mu held
}

// snapshot is all that is offered at one moment. It does not change.
type snapshot struct {
	offers
	streams []string           // sorted
	of      map[string]*offers // of each stream that offers something
}

// offers are things that are offered, by name or URI.
type offers struct {
	tools     map[string]*Entry
	resources map[string]*resource
	templates map[string]*template
	prompts   map[string]*prompt
}

func newOffers() *offers {
	return &offers{map[string]*Entry{}, map[string]*resource{}, map[string]*template{}, map[string]*prompt{}}
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

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{parts: map[string]*Part{}, now: &snapshot{}}
}

// Add offers a tool, or replaces the one of that name that was added by hand
// before. The error says what is wrong with it.
func (r *Registry) Add(t Tool) error {
	e, err := t.entry()
	if err != nil {
		return fmt.Errorf("register tool: %w", err)
	}
	r.update(func(p *Part) {
		p.tools = slices.DeleteFunc(slices.Clone(p.tools), func(old *Entry) bool { return old.name == e.name })
		p.tools = append(p.tools, e)
	})
	return nil
}

// Remove takes tools away that were added by hand, by their full names.
func (r *Registry) Remove(names ...string) {
	r.update(func(p *Part) {
		p.tools = slices.DeleteFunc(slices.Clone(p.tools), func(e *Entry) bool { return slices.Contains(names, e.name) })
	})
}

// AddResource offers a resource in a stream ("": in none), or replaces it.
func (r *Registry) AddResource(stream string, def *sdk.Resource, read sdk.ResourceHandler) {
	r.update(func(p *Part) {
		p.resources = slices.DeleteFunc(slices.Clone(p.resources), func(old *resource) bool { return old.def.URI == def.URI })
		p.resources = append(p.resources, &resource{stream, def, read})
	})
}

// AddResourceTemplate offers a template of resources, or replaces it.
func (r *Registry) AddResourceTemplate(stream string, def *sdk.ResourceTemplate, read sdk.ResourceHandler) {
	r.update(func(p *Part) {
		p.templates = slices.DeleteFunc(slices.Clone(p.templates), func(old *template) bool { return old.def.URITemplate == def.URITemplate })
		p.templates = append(p.templates, &template{stream: stream, def: def, read: read})
	})
}

// AddPrompt offers a prompt in a stream ("": in none), or replaces it.
func (r *Registry) AddPrompt(stream string, def *sdk.Prompt, get sdk.PromptHandler) {
	r.update(func(p *Part) {
		p.prompts = slices.DeleteFunc(slices.Clone(p.prompts), func(old *prompt) bool { return old.def.Name == def.Name })
		p.prompts = append(p.prompts, &prompt{stream: stream, def: def, get: get})
	})
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

// update changes what is registered by hand. change must not alter slices in place.
func (r *Registry) update(change func(*Part)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &Part{}
	if old := r.parts[partHand]; old != nil {
		*p = *old
	}
	change(p)
	r.parts[partHand] = p
	r.publish()
}

// publish makes a new snapshot of the parts. The caller holds mu.
func (r *Registry) publish() {
	s := &snapshot{offers: *newOffers(), of: map[string]*offers{}}
	streams := map[string]struct{}{}
	for _, name := range r.ordered() {
		p := r.parts[name]
		for _, stream := range p.streams {
			streams[stream] = struct{}{}
		}
		offer(s, p.tools, func(o *offers) map[string]*Entry { return o.tools }, func(x *Entry) string { return x.name })
		offer(s, p.resources, func(o *offers) map[string]*resource { return o.resources }, func(x *resource) string { return x.def.URI })
		offer(s, p.templates, func(o *offers) map[string]*template { return o.templates }, func(x *template) string { return x.def.URITemplate })
		offer(s, p.prompts, func(o *offers) map[string]*prompt { return o.prompts }, func(x *prompt) string { return x.def.Name })
	}
	for stream := range s.of {
		streams[stream] = struct{}{}
	}
	delete(streams, "")
	s.streams = slices.Sorted(maps.Keys(streams))
	r.now = s
	if r.changed != nil {
		r.changed(s)
	}
}

// offer adds what a part has of one kind, except what has a taken name.
func offer[T offered[T]](s *snapshot, list []T, kind func(*offers) map[string]T, name func(T) string) {
	all := kind(&s.offers)
	for _, x := range list {
		own := s.of[x.in()]
		if own == nil {
			own = newOffers()
			s.of[x.in()] = own
		}
		if _, taken := all[name(x)]; !taken {
			all[name(x)], kind(own)[name(x)] = x, x
		}
	}
}

// ordered returns the names of the parts in the order in which names are given away.
func (r *Registry) ordered() []string {
	first := []string{PartCore, PartLocal, partHand, PartFiles}
	var rest []string
	for name := range r.parts {
		if !slices.Contains(first, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return slices.DeleteFunc(append(first, rest...), func(name string) bool { return r.parts[name] == nil })
}

// watch calls f with what is offered now, and at each change after it.
func (r *Registry) watch(f func(*snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = f
	f(r.now)
}
