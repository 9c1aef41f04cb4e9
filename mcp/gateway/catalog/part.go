package catalog

import (
	"context"
	"reflect"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// item is one thing that is offered: a tool (an [Entry]), a resource, a template of
// resources or a prompt. It does not change.
type item interface {
	at() place
	same(other item) bool // of the same key: they look the same from outside, and to the gate
	offer(v *View)        // puts it into the server of a view
	withdraw(s *sdk.Server)
}

type kind byte

const (
	kindTool kind = iota
	kindResource
	kindTemplate
	kindPrompt
	kinds // their number
)

// listChanged names the message that tells of changes of a kind; templates go with
// the resources.
var listChanged = [kinds]string{
	kindTool:     "notifications/tools/list_changed",
	kindResource: "notifications/resources/list_changed",
	kindTemplate: "notifications/resources/list_changed",
	kindPrompt:   "notifications/prompts/list_changed",
}

// key names an item: by its full name, its URI, or its template of URIs.
type key struct {
	kind kind
	name string
}

// place names an item and its stream.
type place struct {
	key
	stream string // "": in none
}

func (p place) at() place { return p }

type resource struct {
	place
	def    *sdk.Resource
	read   sdk.ResourceHandler
	follow func(ctx context.Context, uri string) error // has its changes told; nil: they are
}

func (x *resource) offer(v *View)          { v.server.AddResource(x.def, v.readResource) }
func (x *resource) withdraw(s *sdk.Server) { s.RemoveResources(x.name) }
func (x *resource) same(other item) bool {
	o, ok := other.(*resource)
	return ok && x.def.Name == o.def.Name && x.def.Description == o.def.Description && x.def.MIMEType == o.def.MIMEType
}

// Values returns the values that an argument can have, for a caller to whom the
// devices are shown for which shown is true.
type Values func(shown func(deviceID string) bool) []string

type template struct {
	place
	def      *sdk.ResourceTemplate
	read     sdk.ResourceHandler
	complete map[string]Values // of its variables
}

func (x *template) offer(v *View)          { v.server.AddResourceTemplate(x.def, v.readResource) }
func (x *template) withdraw(s *sdk.Server) { s.RemoveResourceTemplates(x.name) }
func (x *template) same(other item) bool {
	o, ok := other.(*template)
	return ok && x.def.Name == o.def.Name && x.def.Description == o.def.Description && x.def.MIMEType == o.def.MIMEType
}

type prompt struct {
	place
	def      *sdk.Prompt
	get      sdk.PromptHandler
	complete map[string]Values // of its arguments
	lasting  bool              // what it looks like is all that makes it another one
}

func (x *prompt) offer(v *View)          { v.server.AddPrompt(x.def, v.getPrompt) }
func (x *prompt) withdraw(s *sdk.Server) { s.RemovePrompts(x.name) }
func (x *prompt) same(other item) bool {
	o, ok := other.(*prompt)
	return ok && (o == x || x.lasting && o.lasting && reflect.DeepEqual(x.def, o.def))
}

// Part describes what one source offers. It must not be changed once a [Registry] has it.
type Part struct {
	streams []string // that are there even without tools
	items   []item
}

// AddStreams makes streams that are there even while nothing is in them.
func (p *Part) AddStreams(names ...string) { p.streams = append(p.streams, names...) }

// AddTool adds a tool. The error says what is wrong with it.
func (p *Part) AddTool(t Tool) error {
	e, err := t.entry()
	if err == nil {
		p.items = append(p.items, e)
	}
	return err
}

// AddResource adds a resource of a stream ("": of none).
func (p *Part) AddResource(stream string, def *sdk.Resource, read sdk.ResourceHandler) {
	p.items = append(p.items, &resource{place{key{kindResource, def.URI}, stream}, def, read, nil})
}

// AddFollowed adds a resource whose changes are told after follow was called for it. It may be called again.
func (p *Part) AddFollowed(stream string, def *sdk.Resource, read sdk.ResourceHandler, follow func(ctx context.Context, uri string) error) {
	p.items = append(p.items, &resource{place{key{kindResource, def.URI}, stream}, def, read, follow})
}

// AddTemplate adds a template of resources; complete has the values of its variables.
func (p *Part) AddTemplate(stream string, def *sdk.ResourceTemplate, read sdk.ResourceHandler, complete map[string]Values) {
	p.items = append(p.items, &template{place{key{kindTemplate, def.URITemplate}, stream}, def, read, complete})
}

// AddPrompt adds a prompt; complete has the values of its arguments.
func (p *Part) AddPrompt(stream string, def *sdk.Prompt, get sdk.PromptHandler, complete map[string]Values) {
	p.items = append(p.items, &prompt{place{key{kindPrompt, def.Name}, stream}, def, get, complete, false})
}

// AddLasting adds a prompt whose handler lasts as long as it looks the same.
func (p *Part) AddLasting(stream string, def *sdk.Prompt, get sdk.PromptHandler) {
	p.items = append(p.items, &prompt{place{key{kindPrompt, def.Name}, stream}, def, get, nil, true})
}

// Len returns how many tools and how many resources there are.
func (p *Part) Len() (tools, resources int) {
	for _, x := range p.items {
		switch x.(type) {
		case *Entry:
			tools++
		case *resource:
			resources++
		}
	}
	return tools, resources
}

// same reports whether two parts look the same from outside.
func (p *Part) same(other *Part) bool {
	return slices.Equal(p.streams, other.streams) &&
		slices.EqualFunc(p.items, other.items, func(a, b item) bool { return a.at() == b.at() && a.same(b) })
}
