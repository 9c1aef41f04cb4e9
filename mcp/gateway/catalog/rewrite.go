package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The revisions of the protocol that differ in what is an error (docs/mcp.md 7).
const (
	Version2024   = "2024-11-05" // of clients that name none
	Version2025   = "2025-11-25" // wrong arguments are a result from here on
	VersionModern = "2026-07-28" // no handshake
)

// toolResult is the answer to tools/call for clients before 2026-07-28: isError is
// always there, and metadata for those of 2024.
type toolResult struct {
	sdk.ResultBase
	Content    []sdk.Content `json:"content"`
	Structured any           `json:"structuredContent,omitempty"`
	IsError    bool          `json:"isError"`
	Metadata   *resultNote   `json:"metadata,omitempty"`
}

type resultNote struct {
	ExecutionTime float64 `json:"executionTime"` // milliseconds
}

// rewrite stands between the protocol and the server: it finds tools by their bare
// names, words errors, and gives older clients the shapes that they know. What goes
// to a 2026-07-28 client is the SDK's own.
func (v *View) rewrite(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		began := time.Now()
		version := versionOf(req)
		ctx = withRequest(ctx, req)
		switch r := req.(type) {
		case *sdk.CallToolRequest:
			e, known := v.Tool(r.Params.Name)
			if !known {
				v.runner.RefuseUnknown(CallerFrom(ctx), r.Params.Name)
				return nil, unknownTool(CallerFrom(ctx), version, r.Params.Name)
			}
			r.Params.Name = e.name
		case *sdk.GetPromptRequest:
			if !v.has(kindPrompt, r.Params.Name) {
				return nil, unknownPrompt(CallerFrom(ctx), r.Params.Name)
			}
		case *sdk.ReadResourceRequest:
			if v.reader(r.Params.URI) == nil {
				return nil, UnknownResource(CallerFrom(ctx), r.Params.URI)
			}
		}
		levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
		if p, ok := req.GetParams().(*sdk.SetLoggingLevelParams); ok && !slices.Contains(levels, string(p.Level)) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: CallerFrom(ctx).Say("gateway/level-unknown", Clip(string(p.Level)))}
		}
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, wireError(method, err)
		}
		if version >= VersionModern {
			return result, nil
		}
		switch r := result.(type) {
		case *sdk.CallToolResult:
			return oldToolResult(r, version, time.Since(began)), nil
		case *sdk.ListResourcesResult:
			if version == Version2024 {
				return oldResources(r), nil
			}
		}
		return result, nil
	}
}

// withRequest puts the caller of a request into its context: the one that it
// carries, or that of its session, which may name another language in each request.
func withRequest(ctx context.Context, req sdk.Request) context.Context {
	extra := req.GetExtra()
	if c, ok := callerOf(extra); ok {
		return WithCaller(ctx, c)
	}
	if extra == nil || extra.Header.Get("Accept-Language") == "" {
		return ctx
	}
	c := CallerFrom(ctx)
	if language := LanguageOf(extra.Header); language != c.Language {
		c.Language = language
		ctx = WithCaller(ctx, c)
	}
	return ctx
}

// versionOf returns the revision that a request speaks. The SDK tells the one that
// the client asked for; where that is unknown, the handshake has settled on the
// newest that has one.
func versionOf(req sdk.Request) string {
	r, ok := req.(interface{ ProtocolVersion() string })
	if !ok || r.ProtocolVersion() == "" {
		return Version2024
	}
	if version := r.ProtocolVersion(); slices.Contains(sdk.SupportedProtocolVersions(), version) {
		return version
	}
	return Version2025
}

func oldToolResult(r *sdk.CallToolResult, version string, took time.Duration) sdk.Result {
	out := &toolResult{Content: r.Content, Structured: r.StructuredContent, IsError: r.IsError}
	out.Meta = r.Meta
	if version == Version2024 {
		out.Metadata = &resultNote{math.Round(float64(took.Microseconds())/100) / 10}
	}
	return out
}

// resourceList is a list of resources for clients of 2024.
type resourceList struct {
	sdk.ResultBase
	Resources  []oldResource `json:"resources"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// oldResource is a resource with its type and size a second time, as metadata.
type oldResource struct {
	*sdk.Resource
	Metadata struct {
		Type string `json:"type,omitempty"`
		Size int64  `json:"size,omitempty"`
	} `json:"metadata"`
}

func oldResources(r *sdk.ListResourcesResult) sdk.Result {
	out := &resourceList{Resources: make([]oldResource, len(r.Resources)), NextCursor: r.NextCursor}
	out.Meta = r.Meta
	for i, x := range r.Resources {
		old := &out.Resources[i]
		old.Resource, old.Metadata.Type, old.Metadata.Size = x, x.MIMEType, x.Size
	}
	return out
}

// CodeRefused is the JSON-RPC code of requests that are refused for reasons of our own.
const CodeRefused = -32000

// unknownTool returns the error for a name that the view does not know. Its code
// depends on the revision (docs/mcp.md 7).
func unknownTool(c Caller, version, name string) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/tool-unknown", Clip(name))}
	if version == Version2024 {
		e.Code = jsonrpc.CodeMethodNotFound
		return noToolError{e}
	}
	return e
}

func unknownPrompt(c Caller, name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/prompt-unknown", Clip(name))}
}

// UnknownResource returns the error for a resource that the view does not show.
// Clients look for the URI in its data.
func UnknownResource(c Caller, uri string) error {
	data, _ := json.Marshal(map[string]string{"uri": uri}) // never fails
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/resource-unknown", Clip(uri)), Data: data}
}

// noToolError is an error with the code of an unknown method that the SDK does not
// take for one of its own, which it would word itself.
type noToolError struct{ wire *jsonrpc.Error }

// Error returns the message.
func (e noToolError) Error() string { return e.wire.Message }

// As gives the code away. Nothing else finds the error of the wire in it.
func (e noToolError) As(target any) bool {
	wire, ok := target.(**jsonrpc.Error)
	if ok {
		*wire = e.wire
	}
	return ok
}

// wireError gives an error without a code one: the wire would carry 0.
func wireError(method string, err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != 0 {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	if method == "initialize" {
		code = jsonrpc.CodeInvalidRequest // a second time
	}
	return &jsonrpc.Error{Code: code, Message: OneLine(err)}
}
