package gateway

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/rawjson"
)

// deep reports whether JSON nests deeper than any honest message does.
func deep(data []byte) bool { return rawjson.Depth(data) > maxDepth }

// resources are what the view shows, by URI.
func (v *view) resources() []*sdk.Resource {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]*sdk.Resource, 0, len(v.shown.resources))
	for _, uri := range slices.Sorted(maps.Keys(v.shown.resources)) {
		out = append(out, v.shown.resources[uri].def)
	}
	return out
}

// prompts are what the view shows, by name.
func (v *view) prompts() []*sdk.Prompt {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]*sdk.Prompt, 0, len(v.shown.prompts))
	for _, name := range slices.Sorted(maps.Keys(v.shown.prompts)) {
		out = append(out, v.shown.prompts[name].def)
	}
	return out
}

func (v *view) promptNamed(name string) (*prompt, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.shown.prompts[name]
	return p, ok
}

// getPrompt fills in a prompt that the view shows.
func (v *view) getPrompt(ctx context.Context, req *sdk.GetPromptRequest) (result *sdk.GetPromptResult, err error) {
	language := contextLanguage(ctx)
	p, ok := v.promptNamed(req.Params.Name)
	if !ok { // it has left since
		return nil, unknownPrompt(language, req.Params.Name)
	}
	for _, a := range p.def.Arguments {
		if a.Required && req.Params.Arguments[a.Name] == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(language, "缺少参数: ", "argument is missing: ") + a.Name}
		}
	}
	defer func() {
		if p := recover(); p != nil {
			v.gateway.log.Error("prompt crashed", "prompt", req.Params.Name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: say(language, "提示词出错了", "the prompt failed")}
		}
	}()
	return p.get(ctx, req)
}

// reader is who reads a URI of the view.
func (v *view) reader(uri string) (sdk.ResourceHandler, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.shown.resources[uri]; x != nil {
		return x.read, true
	}
	for _, pattern := range slices.Sorted(maps.Keys(v.shown.templates)) {
		if templateFits(pattern, uri) {
			return v.shown.templates[pattern].read, true
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

// read reads a resource that the server of the view was asked for.
func (v *view) read(ctx context.Context, req *sdk.ReadResourceRequest) (result *sdk.ReadResourceResult, err error) {
	read, ok := v.reader(req.Params.URI)
	if !ok {
		return nil, unknownResource(contextLanguage(ctx), req.Params.URI)
	}
	defer func() {
		if p := recover(); p != nil {
			v.gateway.log.Error("resource crashed", "uri", req.Params.URI, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: say(contextLanguage(ctx), "读取资源时出错", "reading the resource failed")}
		}
	}()
	return read(ctx, req)
}

// readURI reads a resource for REST.
func (v *view) readURI(ctx context.Context, uri string) ([]*sdk.ResourceContents, error) {
	result, err := v.read(ctx, &sdk.ReadResourceRequest{Params: &sdk.ReadResourceParams{URI: uri}})
	if err != nil || result == nil {
		return nil, err
	}
	return result.Contents, nil
}

// subscribe lets a session hear of a resource that the view shows.
func (v *view) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	v.mu.Lock()
	_, known := v.shown.resources[req.Params.URI]
	v.mu.Unlock()
	if !known {
		return unknownResource(contextLanguage(ctx), req.Params.URI)
	}
	return nil
}

// Updated tells those who subscribed that resources are others now.
func (g *Gateway) Updated(ctx context.Context, uris ...string) {
	for _, v := range g.views.all() {
		for _, uri := range uris {
			v.mu.Lock()
			_, known := v.shown.resources[uri]
			v.mu.Unlock()
			if known {
				_ = v.server.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: uri})
			}
		}
	}
}

// maxValues is how many values one completion offers.
const maxValues = 100

// complete completes an argument of a prompt or a variable of a template. A
// reference to anything that the view does not show is an error.
func (v *view) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
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
func (v *view) candidates(ctx context.Context, ref *sdk.CompleteReference, argument string) ([]string, error) {
	var complete map[string]values
	switch ref.Type {
	case "ref/prompt":
		p, known := v.promptNamed(ref.Name)
		if !known {
			return nil, unknownPrompt(contextLanguage(ctx), ref.Name)
		}
		complete = p.complete
	case "ref/resource":
		if _, known := v.reader(ref.URI); !known {
			return nil, unknownResource(contextLanguage(ctx), ref.URI)
		}
		v.mu.Lock()
		if t := v.shown.templates[ref.URI]; t != nil {
			complete = t.complete
		}
		v.mu.Unlock()
	}
	if f := complete[argument]; f != nil {
		return f(v.who.shows), nil
	}
	return nil, nil
}
