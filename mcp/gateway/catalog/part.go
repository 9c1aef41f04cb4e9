package catalog

import (
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Part describes what one source offers. It must not be changed once a [Registry] has it.
type Part struct {
	streams   []string // that are there even without tools
	tools     []*Entry
	resources []*resource
	templates []*template
	prompts   []*prompt
}

// resource is one resource in its stream.
type resource struct {
	stream string
	def    *sdk.Resource
	read   sdk.ResourceHandler
}

// Values returns the values that an argument can have, for a caller to whom the
// devices are shown for which shown is true.
type Values func(shown func(deviceID string) bool) []string

// template is a resource template in its stream.
type template struct {
	stream   string
	def      *sdk.ResourceTemplate
	read     sdk.ResourceHandler
	complete map[string]Values // of its variables
}

// prompt is one prompt in its stream.
type prompt struct {
	stream   string
	def      *sdk.Prompt
	get      sdk.PromptHandler
	complete map[string]Values // of its arguments
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

// AddStreams makes streams that are there even while nothing is in them.
func (p *Part) AddStreams(names ...string) { p.streams = append(p.streams, names...) }

// AddTool adds a tool. The error says what is wrong with it.
func (p *Part) AddTool(t Tool) error {
	e, err := t.entry()
	if err != nil {
		return err
	}
	p.tools = append(p.tools, e)
	return nil
}

// AddResource adds a resource of a stream ("": of none).
func (p *Part) AddResource(stream string, def *sdk.Resource, read sdk.ResourceHandler) {
	p.resources = append(p.resources, &resource{stream, def, read})
}

// AddTemplate adds a template of resources; complete has the values of its variables.
func (p *Part) AddTemplate(stream string, def *sdk.ResourceTemplate, read sdk.ResourceHandler, complete map[string]Values) {
	p.templates = append(p.templates, &template{stream, def, read, complete})
}

// AddPrompt adds a prompt; complete has the values of its arguments.
func (p *Part) AddPrompt(stream string, def *sdk.Prompt, get sdk.PromptHandler, complete map[string]Values) {
	p.prompts = append(p.prompts, &prompt{stream, def, get, complete})
}

// Merge adds all that other has.
func (p *Part) Merge(other *Part) {
	p.streams = append(p.streams, other.streams...)
	p.tools = append(p.tools, other.tools...)
	p.resources = append(p.resources, other.resources...)
	p.templates = append(p.templates, other.templates...)
	p.prompts = append(p.prompts, other.prompts...)
}

// Tools returns how many tools there are.
func (p *Part) Tools() int { return len(p.tools) }

// Resources returns how many resources there are.
func (p *Part) Resources() int { return len(p.resources) }

// same reports whether two parts look the same from outside.
func (p *Part) same(other *Part) bool {
	return slices.Equal(p.streams, other.streams) &&
		slices.EqualFunc(p.tools, other.tools, func(a, b *Entry) bool { return a.name == b.name && a.same(b) }) &&
		slices.EqualFunc(p.resources, other.resources, func(a, b *resource) bool { return a.def.URI == b.def.URI && a.def.Name == b.def.Name }) &&
		slices.EqualFunc(p.prompts, other.prompts, func(a, b *prompt) bool { return a.def.Name == b.def.Name })
}
