package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// View describes what one caller sees of one stream, or of all. It has a server and
// handlers of its own: a session that was opened here cannot leave it. All methods
// may be called at the same time.
type View struct {
	key    viewKey
	who    Caller // the token; what else is known of a caller is that of one request
	runner *Runner
	log    *slog.Logger

	server    *sdk.Server
	sessions  http.Handler // initialize, GET, DELETE and the requests between them
	stateless http.Handler // 2026-07-28: every request for itself

	shown  *shown // what the server has
	direct *direct
}

func newView(vs *Views, key viewKey, c Caller) *View {
	v := &View{key: key, who: c, runner: vs.runner, log: vs.log, shown: newShown(key.stream, c)}
	v.server = sdk.NewServer(&sdk.Implementation{Name: "xiaozhi", Title: message.In(text.Chinese, "gateway/server-title") + " " + message.In(text.English, "gateway/server-title"), Version: vs.version}, &sdk.ServerOptions{
		Instructions: message.In(text.English, "gateway/server-instructions") + " " + message.In(text.Chinese, "gateway/server-instructions"),
		Logger:       slog.New(slog.DiscardHandler), // it logs every request
		Capabilities: &sdk.ServerCapabilities{
			Tools:       &sdk.ToolCapabilities{ListChanged: true},
			Prompts:     &sdk.PromptCapabilities{ListChanged: true},
			Resources:   &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Logging:     &sdk.LoggingCapabilities{},
			Completions: &sdk.CompletionCapabilities{},
		},
		PageSize: 500,
		// A token sees its own part of everything, so nothing may be kept for others.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) {
			if key.token != "" {
				c.CacheScope = "private"
			}
		},
		CompletionHandler:  v.complete,
		SubscribeHandler:   v.subscribe,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	v.server.AddReceivingMiddleware(v.rewrite)
	v.direct = &direct{server: v.server}
	get := func(*http.Request) *sdk.Server { return v.server }
	// Access control has looked at Host and Origin, and the body is limited already.
	v.sessions = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true})
	v.stateless = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		DisableLocalhostProtection: true, Stateless: true, PropagateRequestCancellation: true,
	})
	return v
}

// Token returns the name of the token whose view it is; "" without one.
func (v *View) Token() string { return v.key.token }

// ServeSession serves a request of a session of the streamable transport, or one
// that opens a session.
func (v *View) ServeSession(w http.ResponseWriter, r *http.Request) { v.sessions.ServeHTTP(w, r) }

// ServeStateless serves a request of 2026-07-28.
func (v *View) ServeStateless(w http.ResponseWriter, r *http.Request) { v.stateless.ServeHTTP(w, r) }

// EndSession closes a session of the streamable transport, by its id.
func (v *View) EndSession(id string) {
	for session := range v.server.Sessions() {
		if session.ID() == id {
			_ = session.Close()
		}
	}
}

// Connect begins a session on a transport. With a revision it begins as if the
// client had made the handshake in it, else with the client's own.
func (v *View) Connect(ctx context.Context, t sdk.Transport, revision string) (*sdk.ServerSession, error) {
	var state *sdk.ServerSessionState
	if revision != "" {
		state = &sdk.ServerSessionState{
			InitializeParams:  &sdk.InitializeParams{ProtocolVersion: revision},
			InitializedParams: &sdk.InitializedParams{}, LogLevel: "info",
		}
	}
	return v.server.Connect(ctx, t, &sdk.ServerSessionOptions{State: state})
}

// Ask has the server answer one request without a session, in a revision. header is
// that of the request that carried it. The error is that of ctx, or of a server
// that has ended.
func (v *View) Ask(ctx context.Context, c Caller, revision string, header http.Header, request *jsonrpc.Request) (*jsonrpc.Response, error) {
	return v.direct.ask(ctx, c, revision, header, request)
}

// Tool returns a tool by its full name, or by its bare one in a view of one stream.
func (v *View) Tool(name string) (*Entry, bool) { return v.shown.tool(name) }

// Tools returns the tools, by name.
func (v *View) Tools() []*Entry { return v.shown.tools() }

// Resources returns the resources, by URI.
func (v *View) Resources() []*sdk.Resource { return v.shown.resources() }

// Prompts returns the prompts, by name.
func (v *View) Prompts() []*sdk.Prompt { return v.shown.prompts() }

// unused reports whether no client has a session here.
func (v *View) unused() bool {
	own := v.direct.sessions()
	for range v.server.Sessions() {
		own--
	}
	return own >= 0
}

// close ends all sessions of the view.
func (v *View) close() {
	for session := range v.server.Sessions() {
		_ = session.Close()
	}
}

// apply makes the server have what s offers to this view, and nothing else.
func (v *View) apply(s *snapshot) {
	v.shown.follow(s, v.server, handlers{v.addTool, v.readResource, v.readResource, v.getPrompt})
}

// addTool puts a tool into the server, which panics at some schemas.
func (v *View) addTool(e *Entry) {
	defer func() {
		if p := recover(); p != nil {
			v.log.Warn("tool cannot be offered", "tool", e.name, "why", fmt.Sprint(p))
		}
	}()
	v.server.AddTool(e.def, v.call)
}

// call runs a tool for the server of the view.
func (v *View) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	c, version := CallerFrom(ctx), versionOf(req)
	e, ok := v.Tool(req.Params.Name)
	if !ok { // it has left since
		return nil, unknownTool(c, version, req.Params.Name)
	}
	result, err := v.runner.Run(ctx, e, req.Params.Arguments, req)
	switch bad, invalid := errors.AsType[*ArgumentError](err); {
	case err == nil:
		return result, nil
	case invalid:
		why := c.Say("gateway/arguments-wrong", e.name+": "+bad.Why)
		if version < Version2025 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}
		}
		return failed(why), nil
	case errors.Is(err, ErrReadOnly):
		return nil, &jsonrpc.Error{Code: CodeRefused, Message: c.Say("gateway/read-only-tool", e.name)}
	case errors.Is(err, ErrBusy):
		return nil, &jsonrpc.Error{Code: CodeRefused, Message: c.Say("gateway/calls-at-once")}
	}
	if _, protocol := errors.AsType[*jsonrpc.Error](err); protocol {
		return nil, err
	}
	return failed(Reason(err)), nil
}
