package gateway

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/schema"
)

// Registry is what is offered outward: tools, resources and prompts, each in a
// stream or in none. It accepts them at any time; those who are connected are
// told. The first of a name keeps it, except that Add replaces what Add added.
// All methods may be called at the same time.
type Registry struct {
	mu      sync.Mutex
	parts   map[string]*part // by who adds them
	now     *snapshot
	changed func(*snapshot) // tells the views, in the order of the changes; called with mu held
}

// part is what one source of entries offers.
type part struct {
	streams   []string // that are there even without tools
	tools     []*entry
	resources []*resource
	templates []*template
	prompts   []*prompt
}

// snapshot is all that is offered at one moment. Nobody changes it.
type snapshot struct {
	offers
	streams []string           // sorted
	of      map[string]*offers // of each stream that offers something
}

// offers are things that are offered, by name or URI.
type offers struct {
	tools     map[string]*entry
	resources map[string]*resource
	templates map[string]*template
	prompts   map[string]*prompt
}

func newOffers() *offers {
	return &offers{map[string]*entry{}, map[string]*resource{}, map[string]*template{}, map[string]*prompt{}}
}

// resource is one resource in its stream.
type resource struct {
	stream string
	def    *sdk.Resource
	read   sdk.ResourceHandler
}

// values are what an argument can be, for one to whom these devices are shown.
type values func(shown func(deviceID string) bool) []string

// template is a resource template in its stream.
type template struct {
	stream   string
	def      *sdk.ResourceTemplate
	read     sdk.ResourceHandler
	complete map[string]values // of its variables
}

// prompt is one prompt in its stream.
type prompt struct {
	stream   string
	def      *sdk.Prompt
	get      sdk.PromptHandler
	complete map[string]values // of its arguments
}

func (x *resource) in() string { return x.stream }
func (x *template) in() string { return x.stream }
func (x *prompt) in() string   { return x.stream }

func (x *resource) same(other *resource) bool {
	return x.def.Name == other.def.Name && x.def.Description == other.def.Description && x.def.MIMEType == other.def.MIMEType
}

func (x *template) same(other *template) bool {
	return x.def.Name == other.def.Name && x.def.Description == other.def.Description && x.def.MIMEType == other.def.MIMEType
}

func (x *prompt) same(other *prompt) bool { return x == other }

// The parts, in the order in which names are given away.
const (
	partCore  = "core"
	partLocal = "local"
	partHand  = "hand" // registered by hand
	partFiles = "files"
	// Devices have "device-<id>" each.
	partExternal = "~external" // behind the devices
)

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{parts: map[string]*part{}, now: &snapshot{}}
}

// Add offers a tool, or replaces the one of that name that was added before. The
// error says what is wrong with it.
func (r *Registry) Add(t Tool) error {
	e, err := t.entry()
	if err != nil {
		return fmt.Errorf("register tool: %w", err)
	}
	r.update(func(p *part) {
		p.tools = slices.DeleteFunc(slices.Clone(p.tools), func(old *entry) bool { return old.name == e.name })
		p.tools = append(p.tools, e)
	})
	return nil
}

// Remove takes tools that were added away, by their full names (stream.name).
func (r *Registry) Remove(names ...string) {
	r.update(func(p *part) {
		p.tools = slices.DeleteFunc(slices.Clone(p.tools), func(e *entry) bool { return slices.Contains(names, e.name) })
	})
}

// entry is the tool in its place.
func (t Tool) entry() (*entry, error) {
	e, err := newEntry(t.Stream, t.Name, t.Description, t.Schema, t.Annotations)
	if err != nil {
		return nil, err
	}
	e.ours, e.limit, e.handle = true, t.Timeout, t.Handle
	if (t.Run == nil) == (t.Handle == nil) {
		return nil, errors.New(e.name + " needs either Run or Handle")
	}
	if t.Run == nil {
		return e, nil
	}
	checker, err := schema.NewChecker(e.schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", e.name, err)
	}
	e.run = checked(checker, t.Run)
	return e, nil
}

// AddResource offers a resource in a stream ("": in none), or replaces it.
func (r *Registry) AddResource(stream string, def *sdk.Resource, read sdk.ResourceHandler) {
	r.update(func(p *part) {
		p.resources = slices.DeleteFunc(slices.Clone(p.resources), func(old *resource) bool { return old.def.URI == def.URI })
		p.resources = append(p.resources, &resource{stream, def, read})
	})
}

// AddResourceTemplate offers a template of resources, or replaces it.
func (r *Registry) AddResourceTemplate(stream string, def *sdk.ResourceTemplate, read sdk.ResourceHandler) {
	r.update(func(p *part) {
		p.templates = slices.DeleteFunc(slices.Clone(p.templates), func(old *template) bool { return old.def.URITemplate == def.URITemplate })
		p.templates = append(p.templates, &template{stream: stream, def: def, read: read})
	})
}

// AddPrompt offers a prompt in a stream ("": in none), or replaces it.
func (r *Registry) AddPrompt(stream string, def *sdk.Prompt, get sdk.PromptHandler) {
	r.update(func(p *part) {
		p.prompts = slices.DeleteFunc(slices.Clone(p.prompts), func(old *prompt) bool { return old.def.Name == def.Name })
		p.prompts = append(p.prompts, &prompt{stream: stream, def: def, get: get})
	})
}

// set makes p what a source offers.
func (r *Registry) set(name string, p *part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts[name] = p
	r.publish()
}

// setChanged makes parts what their sources offer, those that look another than
// before; nil takes one away.
func (r *Registry) setChanged(parts map[string]*part) {
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

// same reports whether two parts look the same from outside.
func (p *part) same(other *part) bool {
	return slices.Equal(p.streams, other.streams) &&
		slices.EqualFunc(p.tools, other.tools, func(a, b *entry) bool { return a.name == b.name && a.same(b) }) &&
		slices.EqualFunc(p.resources, other.resources, func(a, b *resource) bool { return a.def.URI == b.def.URI && a.def.Name == b.def.Name }) &&
		slices.EqualFunc(p.prompts, other.prompts, func(a, b *prompt) bool { return a.def.Name == b.def.Name })
}

// update changes what is registered by hand. change must not alter slices in place.
func (r *Registry) update(change func(*part)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &part{}
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
		offer(s, p.tools, func(o *offers) map[string]*entry { return o.tools }, func(x *entry) string { return x.name })
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

// offer adds what a part has of one kind, except what has a name that is taken.
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

// ordered are the parts in the order in which names are given away.
func (r *Registry) ordered() []string {
	first := []string{partCore, partLocal, partHand, partFiles}
	var rest []string
	for name := range r.parts {
		if !slices.Contains(first, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return slices.DeleteFunc(append(first, rest...), func(name string) bool { return r.parts[name] == nil })
}

// watch calls f with what is offered now, and at each change from then on.
func (r *Registry) watch(f func(*snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = f
	f(r.now)
}
