package offer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/gateway/catalog"
)

// outwardStream is the stream under which another server is offered: its own, unless that is one of ours.
func outwardStream(stream string) string {
	own := []string{"", "system", "time", "util", "device", "info", "talk", "timer", "music", "prompts", "local"}
	if slices.Contains(own, stream) || strings.HasPrefix(stream, "device-") {
		stream = "server-" + stream
	}
	return catalog.PlainStream(stream)
}

// addShare adds the resources and prompts of another server. Resources keep their URIs; of two that are the same the first
// is offered. Prompts are named after the stream.
func addShare(p *catalog.Part, s library.Share) {
	stream := outwardStream(s.Stream)
	read := func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		out, err := s.Read(ctx, r.Params.URI)
		return out, wire(err)
	}
	for _, r := range s.Resources {
		if usable(r.URI) {
			p.AddFollowed(stream, r, read, func(ctx context.Context, uri string) error { return wire(s.Follow(ctx, uri)) })
		}
	}
	for _, t := range s.Templates {
		if usable(t.URITemplate) {
			p.AddTemplate(stream, t, read, nil)
		}
	}
	for _, one := range s.Prompts {
		name, def := one.Name, *one
		def.Name = catalog.JoinName(stream, name)
		p.AddLasting(stream, &def, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			out, err := s.Get(ctx, name, r.Params.Arguments)
			return out, wire(err)
		})
	}
}

// usable reports whether a URI of another server can be offered: the SDK takes absolute ones only, and ours are not for others.
func usable(uri string) bool {
	scheme, rest, ok := strings.Cut(uri, ":")
	return ok && scheme != "" && rest != "" && !strings.EqualFold(scheme, "xiaozhi") && !strings.ContainsFunc(scheme, func(r rune) bool { return !catalog.IsPlain(r) && r != '+' && r != '.' })
}

// wire returns what another server has reported as a client hears it.
func wire(err error) error {
	if reported, is := errors.AsType[*mcp.ToolError](err); is {
		return &jsonrpc.Error{Code: cmp.Or(reported.Code, jsonrpc.CodeInternalError), Message: reported.Message}
	}
	return err
}
