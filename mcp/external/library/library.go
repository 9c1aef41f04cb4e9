// Package library is what a server offers beside its tools: resources, templates of resources, and prompts. A model reaches
// them by two tools that stand for all of them.
package library

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxItems  = 256              // of each kind
	maxURI    = 2 << 10          // bytes
	maxName   = 256              // bytes
	listLimit = 15 * time.Second // of one list
)

// Session is a connection to a server, as far as this package uses it; [sdk.ClientSession] is one.
type Session interface {
	InitializeResult() *sdk.InitializeResult
	Resources(ctx context.Context, p *sdk.ListResourcesParams) iter.Seq2[*sdk.Resource, error]
	ResourceTemplates(ctx context.Context, p *sdk.ListResourceTemplatesParams) iter.Seq2[*sdk.ResourceTemplate, error]
	Prompts(ctx context.Context, p *sdk.ListPromptsParams) iter.Seq2[*sdk.Prompt, error]
	ReadResource(ctx context.Context, p *sdk.ReadResourceParams) (*sdk.ReadResourceResult, error)
	GetPrompt(ctx context.Context, p *sdk.GetPromptParams) (*sdk.GetPromptResult, error)
}

// Library lists what a server offers. It does not change. nil: nothing.
type Library struct {
	Resources []*sdk.Resource
	Templates []*sdk.ResourceTemplate
	Prompts   []*sdk.Prompt
}

// List reads what a server says that it has, 256 of each kind at most. What cannot be read is missing, and the error says why.
func List(ctx context.Context, s Session) (*Library, error) {
	l := &Library{}
	about := s.InitializeResult()
	if about == nil || about.Capabilities == nil {
		return l, nil
	}
	var errs [3]error
	if about.Capabilities.Resources != nil {
		l.Resources, errs[0] = collect(ctx, "resources", func(ctx context.Context) iter.Seq2[*sdk.Resource, error] { return s.Resources(ctx, nil) },
			func(r *sdk.Resource) string { return r.URI })
		l.Templates, errs[1] = collect(ctx, "templates of resources", func(ctx context.Context) iter.Seq2[*sdk.ResourceTemplate, error] {
			return s.ResourceTemplates(ctx, nil)
		},
			func(t *sdk.ResourceTemplate) string { return t.URITemplate })
	}
	if about.Capabilities.Prompts != nil {
		l.Prompts, errs[2] = collect(ctx, "prompts", func(ctx context.Context) iter.Seq2[*sdk.Prompt, error] { return s.Prompts(ctx, nil) },
			func(p *sdk.Prompt) string { return p.Name })
	}
	for _, err := range errs {
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

// collect reads a list until it ends, begins again or is too long. Items without a usable name are left out.
func collect[T any](ctx context.Context, what string, list func(context.Context) iter.Seq2[*T, error], name func(*T) string) (all []*T, err error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	for item, err := range list(ctx) {
		if err != nil {
			return all, fmt.Errorf("list the %s: %w", what, err)
		}
		if item == nil || name(item) == "" || len(name(item)) > maxURI {
			continue
		}
		if len(all) == maxItems || slices.ContainsFunc(all, func(had *T) bool { return name(had) == name(item) }) {
			return all, nil
		}
		all = append(all, item)
	}
	return all, nil
}

// HasResource reports whether a resource is listed.
func (l *Library) HasResource(uri string) bool {
	return l != nil && slices.ContainsFunc(l.Resources, func(r *sdk.Resource) bool { return r.URI == uri })
}

// Len returns how many resources, with their templates, and how many prompts there are.
func (l *Library) Len() (resources, prompts int) {
	if l == nil {
		return 0, 0
	}
	return len(l.Resources) + len(l.Templates), len(l.Prompts)
}

// Share is the library of a server, as it is passed on to others. Its functions go to the server as it is when they are called.
type Share struct {
	Server, Stream string

	*Library

	Read   func(ctx context.Context, uri string) (*sdk.ReadResourceResult, error)
	Get    func(ctx context.Context, name string, arguments map[string]string) (*sdk.GetPromptResult, error)
	Follow func(ctx context.Context, uri string) error // changes of the resource are told from now on
}
