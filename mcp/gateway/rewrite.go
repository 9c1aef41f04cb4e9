package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The revisions of the protocol that differ in what is an error.
const (
	version2024   = "2024-11-05" // the seeds'
	version2025   = "2025-11-25" // wrong arguments are a result from here on
	versionModern = "2026-07-28" // no handshake
)

// toolResult is the answer to tools/call as the seeds show it: isError is always
// there, and so is metadata for their revision.
type toolResult struct {
	sdk.ResultBase
	Content    []sdk.Content `json:"content"`
	Structured any           `json:"structuredContent,omitempty"`
	IsError    bool          `json:"isError"`
	Metadata   *resultNote   `json:"metadata,omitempty"`
}

// resultNote is the metadata of seed 003.
type resultNote struct {
	ExecutionTime float64 `json:"executionTime"` // milliseconds
}

// rewrite stands between the protocol and the server: it finds tools by their
// bare names, words errors, and gives older clients the shapes of the seeds. What
// goes to a 2026-07-28 client is the SDK's own.
func (v *view) rewrite(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		began := time.Now()
		version := versionOf(req)
		ctx = context.WithValue(withRequest(ctx, req), viewIn{}, v)
		switch r := req.(type) {
		case *sdk.CallToolRequest:
			e, known := v.tool(r.Params.Name)
			if !known {
				v.gateway.auditUnknown(callerFrom(ctx), r.Params.Name)
				return nil, unknownTool(callerFrom(ctx).language, version, r.Params.Name)
			}
			r.Params.Name = e.name
		case *sdk.GetPromptRequest:
			if _, known := v.promptNamed(r.Params.Name); !known {
				return nil, unknownPrompt(contextLanguage(ctx), r.Params.Name)
			}
		case *sdk.ReadResourceRequest:
			if _, known := v.reader(r.Params.URI); !known {
				return nil, unknownResource(contextLanguage(ctx), r.Params.URI)
			}
		}
		if p, ok := req.GetParams().(*sdk.SetLoggingLevelParams); ok && !slices.Contains(levels(), string(p.Level)) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(callerFrom(ctx).language, "未知的日志级别: ", "unknown level: ") + clip(string(p.Level))}
		}
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, wireError(method, err)
		}
		if version >= versionModern {
			return result, nil
		}
		switch r := result.(type) {
		case *sdk.CallToolResult:
			return oldToolResult(r, version, time.Since(began)), nil
		case *sdk.ListResourcesResult:
			if version == version2024 {
				return oldResources(r), nil
			}
		}
		return result, nil
	}
}

// levels are those of messages for a client's log.
func levels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// withRequest puts the caller of a request into its context: the one that it
// carries, or that of its session, who may want another language in each request.
func withRequest(ctx context.Context, req sdk.Request) context.Context {
	extra := req.GetExtra()
	if c, ok := callerOf(extra); ok {
		return withCaller(ctx, c)
	}
	if extra == nil || extra.Header.Get("Accept-Language") == "" {
		return ctx
	}
	c := callerFrom(ctx)
	if language := languageIn(extra.Header); language != c.language {
		c.language = language
		ctx = withCaller(ctx, c)
	}
	return ctx
}

// versioned is a request that knows its revision.
type versioned interface{ ProtocolVersion() string }

// versionOf returns the revision that a request speaks. The SDK tells the one that
// the client asked for; where that is unknown, the handshake has settled on the
// newest that has one.
func versionOf(req sdk.Request) string {
	r, ok := req.(versioned)
	if !ok {
		return version2024
	}
	switch version := r.ProtocolVersion(); {
	case version == "":
		return version2024
	case slices.Contains(sdk.SupportedProtocolVersions(), version):
		return version
	}
	return version2025
}

// unknownTool is the error for a name that the view does not know (mcp.md 7.5,
// 4): the seed's for its own revision, MCP's for the later ones.
func unknownTool(language, version, name string) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(language, "工具未找到: ", "tool not found: ") + clip(name)}
	if version == version2024 {
		e.Code = jsonrpc.CodeMethodNotFound
		return noToolError{e}
	}
	return e
}

// auditUnknown leaves the line of the audit for a call of a tool that the caller's
// view does not show: who looks for what he may not see is worth knowing.
func (g *Gateway) auditUnknown(who caller, name string) {
	g.log.Info("outward call", "token", who.name(), "remote", who.remote, "via", who.via, "tool", clip(name), "outcome", "unknown")
}

// unknownPrompt is the error for a prompt that the view does not show.
func unknownPrompt(language, name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(language, "提示词未找到: ", "prompt not found: ") + clip(name)}
}

// unknownResource is the error for a resource that the view does not show; clients
// look for the URI in its data.
func unknownResource(language, uri string) error {
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: say(language, "资源未找到: ", "resource not found: ") + clip(uri), Data: data}
}

// noToolError is an error that the SDK does not take for a method of its own that is
// not there, which it would word itself.
type noToolError struct{ wire *jsonrpc.Error }

// Error is the message.
func (e noToolError) Error() string { return e.wire.Message }

// As gives the code away, and nothing else finds the wire's error in it.
func (e noToolError) As(target any) bool {
	wire, ok := target.(**jsonrpc.Error)
	if ok {
		*wire = e.wire
	}
	return ok
}

// wireError gives errors without a code one: the wire would carry 0.
func wireError(method string, err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != 0 {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	if method == "initialize" {
		code = jsonrpc.CodeInvalidRequest // a second time
	}
	return &jsonrpc.Error{Code: code, Message: oneLine(err)}
}

func oldToolResult(r *sdk.CallToolResult, version string, took time.Duration) sdk.Result {
	out := &toolResult{Content: r.Content, Structured: r.StructuredContent, IsError: r.IsError}
	out.Meta = r.Meta
	if version == version2024 {
		ms, _ := strconv.ParseFloat(strconv.FormatFloat(float64(took.Microseconds())/1000, 'f', 1, 64), 64)
		out.Metadata = &resultNote{ms}
	}
	return out
}

// resourceList is a list of resources as seed 003 shows it.
type resourceList struct {
	sdk.ResultBase
	Resources  []oldResource `json:"resources"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// oldResource has what is known of a resource a second time, as metadata.
type oldResource struct {
	resourceJSON
	Metadata resourceNote `json:"metadata"`
}

// resourceJSON is a resource as the SDK writes it.
type resourceJSON struct {
	Meta        sdk.Meta `json:"_meta,omitempty"`
	Description string   `json:"description,omitempty"`
	MIMEType    string   `json:"mimeType,omitempty"`
	Name        string   `json:"name"`
	Size        int64    `json:"size,omitempty"`
	Title       string   `json:"title,omitempty"`
	URI         string   `json:"uri"`
}

// resourceNote is the metadata of seed 003.
type resourceNote struct {
	Type string `json:"type,omitempty"`
	Size int64  `json:"size,omitempty"`
}

func oldResources(r *sdk.ListResourcesResult) sdk.Result {
	out := &resourceList{Resources: []oldResource{}, NextCursor: r.NextCursor}
	out.Meta = r.Meta
	for _, x := range r.Resources {
		out.Resources = append(out.Resources, oldResource{
			resourceJSON{x.Meta, x.Description, x.MIMEType, x.Name, x.Size, x.Title, x.URI},
			resourceNote{x.MIMEType, x.Size},
		})
	}
	return out
}

// call runs a tool for the server of the view.
func (v *view) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	language, version := callerFrom(ctx).language, versionOf(req)
	e, ok := v.tool(req.Params.Name)
	if !ok { // it has left since
		return nil, unknownTool(language, version, req.Params.Name)
	}
	result, invalid, err := v.gateway.perform(ctx, e, req.Params.Arguments, req)
	switch {
	case errors.Is(err, errReadOnly):
		return nil, &jsonrpc.Error{Code: codeRefused, Message: say(language, "这个令牌是只读的: ", "this token is read-only: ") + e.name}
	case errors.Is(err, errBusy):
		return nil, &jsonrpc.Error{Code: codeRefused, Message: say(language, "同时进行的调用太多", "too many calls at the same time")}
	case err != nil:
		if _, protocol := errors.AsType[*jsonrpc.Error](err); protocol {
			return nil, err
		}
		return failed(reason(err)), nil
	case invalid == "":
		return result, nil
	}
	text := say(language, "参数无效: ", "invalid arguments: ") + e.name + ": " + invalid
	if version < version2025 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
	}
	return failed(text), nil
}

// codeRefused is the code of calls that are not run, for reasons of our own.
const codeRefused = -32000

// rpcError is a JSON-RPC error as the wire has it.
type rpcError struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcProblem      `json:"error"`
}

// rpcProblem is what went wrong.
type rpcProblem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}
