package catalog

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ReadURI returns the contents of a resource.
func (v *View) ReadURI(ctx context.Context, uri string) ([]*sdk.ResourceContents, error) {
	result, err := v.readResource(ctx, &sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: uri}})
	if err != nil || result == nil {
		return nil, err
	}
	return result.Contents, nil
}

// Prompt returns a prompt with its arguments filled in. It returns false if the
// view does not show it.
func (v *View) Prompt(ctx context.Context, name string, arguments map[string]string) (result *sdk.GetPromptResult, known bool, err error) {
	if !v.has(kindPrompt, name) {
		return nil, false, nil
	}
	result, err = v.getPrompt(ctx, &sdk.GetPromptRequest{Params: &sdk.GetPromptParams{Name: name, Arguments: arguments}})
	return result, true, err
}

func (v *View) getPrompt(ctx context.Context, req *sdk.GetPromptRequest) (result *sdk.GetPromptResult, err error) {
	c := CallerFrom(ctx)
	p, ok := v.find(kindPrompt, req.Params.Name).(*prompt)
	if !ok { // it has left since
		return nil, unknownPrompt(c, req.Params.Name)
	}
	for _, a := range p.def.Arguments {
		if a.Required && req.Params.Arguments[a.Name] == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/argument-missing", a.Name)}
		}
	}
	defer func() {
		if p := recover(); p != nil {
			v.log.Error("prompt crashed", "prompt", req.Params.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: c.Say("gateway/prompt-crashed")}
		}
	}()
	return p.get(ctx, req)
}

func (v *View) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (result *sdk.ReadResourceResult, err error) {
	read := v.reader(req.Params.URI)
	if read == nil {
		return nil, UnknownResource(CallerFrom(ctx), req.Params.URI)
	}
	defer func() {
		if p := recover(); p != nil {
			v.log.Error("resource crashed", "uri", req.Params.URI, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: CallerFrom(ctx).Say("gateway/resource-crashed")}
		}
	}()
	return read(ctx, req)
}

// subscribe lets a session hear of a resource that the view shows.
func (v *View) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	r, known := v.find(kindResource, req.Params.URI).(*resource)
	switch {
	case !known || !v.has(kindResource, req.Params.URI):
		return UnknownResource(CallerFrom(ctx), req.Params.URI)
	case r.follow != nil:
		return r.follow(ctx, req.Params.URI)
	}
	return nil
}

const maxValues = 100

// complete completes an argument of a prompt or a variable of a template. A
// reference to anything that the view does not show is an error.
func (v *View) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	all, err := v.candidates(ctx, req.Params.Ref, req.Params.Argument.Name)
	if err != nil {
		return nil, err
	}
	prefix := strings.ToLower(req.Params.Argument.Value)
	fit := []string{}
	for _, value := range all {
		if strings.HasPrefix(strings.ToLower(value), prefix) {
			fit = append(fit, value)
		}
	}
	out := &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: fit, Total: len(fit)}}
	if len(fit) > maxValues {
		out.Completion.Values, out.Completion.HasMore = fit[:maxValues], true
	}
	return out, nil
}

// candidates returns all values that an argument can have, if that is known. The
// URI of a reference is that of a template or of one resource.
func (v *View) candidates(ctx context.Context, ref *sdk.CompleteReference, argument string) ([]string, error) {
	var complete map[string]Values
	switch ref.Type {
	case "ref/prompt":
		p, known := v.find(kindPrompt, ref.Name).(*prompt)
		if !known {
			return nil, unknownPrompt(CallerFrom(ctx), ref.Name)
		}
		complete = p.complete
	case "ref/resource":
		if v.reader(ref.URI) == nil {
			return nil, UnknownResource(CallerFrom(ctx), ref.URI)
		}
		if t, known := v.find(kindTemplate, ref.URI).(*template); known {
			complete = t.complete
		}
	}
	if f := complete[argument]; f != nil {
		return f(v.who.Shows), nil
	}
	return nil, nil
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
