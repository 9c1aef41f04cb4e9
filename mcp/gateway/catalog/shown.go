package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// shown holds what one view shows. All methods may be called at the same time.
type shown struct {
	stream string // of the view; "" for all
	who    Caller

	mu  sync.Mutex
	has offers // its maps are this view's own
}

func newShown(stream string, who Caller) *shown {
	return &shown{stream: stream, who: who, has: *newOffers()}
}

// sees reports whether the view shows a stream.
func (s *shown) sees(stream string) bool {
	return (s.stream == "" || stream == s.stream) && s.who.Sees(stream)
}

// handlers describe what a view adds to its server.
type handlers struct {
	addTool  func(*Entry)
	resource sdk.ResourceHandler
	template sdk.ResourceHandler
	prompt   sdk.PromptHandler
}

// follow makes s what the view may see of now, and the server with it.
func (s *shown) follow(now *snapshot, server *sdk.Server, h handlers) {
	all := &now.offers
	if s.stream != "" { // its own only: there may be as many views as streams
		if all = now.of[s.stream]; all == nil {
			all = newOffers()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	follow(s.sees, s.has.tools, all.tools, h.addTool, server.RemoveTools)
	follow(s.sees, s.has.resources, all.resources, func(x *resource) { server.AddResource(x.def, h.resource) }, server.RemoveResources)
	follow(s.sees, s.has.templates, all.templates, func(x *template) { server.AddResourceTemplate(x.def, h.template) }, server.RemoveResourceTemplates)
	follow(s.sees, s.has.prompts, all.prompts, func(x *prompt) { server.AddPrompt(x.def, h.prompt) }, server.RemovePrompts)
}

// offered is a tool, a resource, a template or a prompt.
type offered[T any] interface {
	in() string        // its stream
	same(other T) bool // they look the same from outside
}

// follow makes shown what sees allows of now, and the server with it. Only what
// looks different is touched there, for each touch is told to all sessions.
func follow[T offered[T]](sees func(string) bool, shown, now map[string]T, add func(T), remove func(...string)) {
	for name := range shown {
		if x, there := now[name]; !there || !sees(x.in()) {
			remove(name)
			delete(shown, name)
		}
	}
	for name, x := range now {
		if !sees(x.in()) {
			continue
		}
		if old, known := shown[name]; !known || !old.same(x) {
			add(x)
		}
		shown[name] = x
	}
}

// tool returns a tool by its full name, or by its bare one in a view of one stream.
func (s *shown) tool(name string) (*Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.has.tools[name]
	if !ok && s.stream != "" {
		e, ok = s.has.tools[s.stream+"."+name]
	}
	return e, ok
}

// sorted returns the values of a map in the order of its keys.
func sorted[T, V any](m map[string]T, value func(T) V) []V {
	out := make([]V, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, value(m[name]))
	}
	return out
}

func (s *shown) tools() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.has.tools, func(e *Entry) *Entry { return e })
}

func (s *shown) resources() []*sdk.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.has.resources, func(x *resource) *sdk.Resource { return x.def })
}

func (s *shown) prompts() []*sdk.Prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.has.prompts, func(x *prompt) *sdk.Prompt { return x.def })
}

func (s *shown) prompt(name string) (*prompt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.has.prompts[name]
	return x, ok
}

// lists reports whether there is a resource of exactly this URI.
func (s *shown) lists(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.has.resources[uri]
	return ok
}

func (s *shown) template(uri string) (*template, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.has.templates[uri]
	return x, ok
}

// reader returns the reader of a URI: that of the resource, or of the first template
// that it fits.
func (s *shown) reader(uri string) (sdk.ResourceHandler, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.has.resources[uri]; x != nil {
		return x.read, true
	}
	for _, pattern := range slices.Sorted(maps.Keys(s.has.templates)) {
		if templateFits(pattern, uri) {
			return s.has.templates[pattern].read, true
		}
	}
	return nil, false
}

// templateFits reports whether a URI is one of a template with plain variables.
func templateFits(pattern, uri string) bool {
	var b strings.Builder
	b.WriteString("^")
	for {
		before, rest, found := strings.Cut(pattern, "{")
		b.WriteString(regexp.QuoteMeta(before))
		if !found {
			break
		}
		b.WriteString("[^/]+")
		_, pattern, _ = strings.Cut(rest, "}")
	}
	b.WriteString("$")
	fits, err := regexp.MatchString(b.String(), uri)
	return fits && err == nil
}
