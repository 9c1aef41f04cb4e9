package catalog

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/router"
)

// View describes what one caller sees of one stream, or of all. It has a server and
// handlers of its own: a session that was opened here cannot leave it. All methods
// may be called at the same time.
type View struct {
	key    viewKey
	who    Caller // the token; what else is known of a caller is that of one request
	runner *Runner
	log    *slog.Logger

	Sessions  http.Handler // of the streamable transport: initialize, GET, DELETE and the requests between them
	Stateless http.Handler // 2026-07-28: every request for itself
	server    *sdk.Server

	direct direct // for requests without a session

	asked time.Time // a caller came last; guarded by the mutex of the views

	mu    sync.Mutex
	shown map[key]item // what the server has

	// ahead counts the changes that apply is yet to make, by the message that tells of
	// them. It has all its keys from the start.
	ahead map[string]*atomic.Int32
}

func newView(vs *Views, of viewKey, c Caller) *View {
	v := &View{
		key: of, who: c, runner: vs.runner, log: vs.log,
		shown: map[key]item{}, direct: direct{byRevision: map[string]*sharedSession{}},
		ahead: map[string]*atomic.Int32{},
	}
	for _, method := range listChanged {
		v.ahead[method] = &atomic.Int32{}
	}
	title := message.In(text.Chinese, "gateway/server-title") + " " + message.In(text.English, "gateway/server-title")
	v.server = sdk.NewServer(&sdk.Implementation{Name: "xiaozhi", Title: title, Version: vs.version}, &sdk.ServerOptions{
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
			if of.token != "" {
				c.CacheScope = "private"
			}
		},
		CompletionHandler:  v.complete,
		SubscribeHandler:   v.subscribe,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	v.server.AddReceivingMiddleware(v.rewrite)
	v.server.AddSendingMiddleware(v.tellOnce)
	get := func(*http.Request) *sdk.Server { return v.server }
	// Access control has looked at Host and Origin, and the body is limited already.
	v.Sessions = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true})
	v.Stateless = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		DisableLocalhostProtection: true, Stateless: true, PropagateRequestCancellation: true,
	})
	return v
}

// Caller returns whose view it is: what else was known of the one for whom it was made
// is left out.
func (v *View) Caller() Caller { return Caller{Token: v.who.Token, Owner: v.who.Owner} }

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

// Tool returns a tool by its full name, or by its bare one in a view of one stream.
func (v *View) Tool(name string) (*Entry, bool) {
	e, ok := v.find(kindTool, name).(*Entry)
	if !ok && v.key.stream != "" {
		e, ok = v.find(kindTool, v.key.stream+"."+name).(*Entry)
	}
	return e, ok
}

// Tools returns the tools, by name.
func (v *View) Tools() []*Entry { return list(v, func(e *Entry) *Entry { return e }) }

// Resources returns the resources, by URI.
func (v *View) Resources() []*sdk.Resource {
	return list(v, func(x *resource) *sdk.Resource { return x.def })
}

// Prompts returns the prompts, by name.
func (v *View) Prompts() []*sdk.Prompt { return list(v, func(x *prompt) *sdk.Prompt { return x.def }) }

// list returns what a view shows of one kind, by name.
func list[T item, D any](v *View, def func(T) D) []D {
	v.mu.Lock()
	defer v.mu.Unlock()
	var items []T
	for _, x := range v.shown {
		if x, fits := x.(T); fits {
			items = append(items, x)
		}
	}
	slices.SortFunc(items, func(a, b T) int { return strings.Compare(a.at().name, b.at().name) })
	out := make([]D, len(items))
	for i, x := range items {
		out[i] = def(x)
	}
	return out
}

// find returns what the view shows of a kind under a name; nil: nothing.
func (v *View) find(k kind, name string) item {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.shown[key{k, name}]
}

func (v *View) has(k kind, name string) bool { return v.find(k, name) != nil }

// reader returns the reader of a URI: that of the resource, or of the first template
// that it fits; nil: the view shows none.
func (v *View) reader(uri string) sdk.ResourceHandler {
	if x, ok := v.find(kindResource, uri).(*resource); ok {
		return x.read
	}
	for _, x := range list(v, func(x *template) *template { return x }) {
		if templateFits(x.name, uri) {
			return x.read
		}
	}
	return nil
}

// unused reports whether no client has a session here.
func (v *View) unused() bool {
	v.direct.mu.Lock()
	own := len(v.direct.byRevision)
	v.direct.mu.Unlock()
	for range v.server.Sessions() {
		own--
	}
	return own >= 0
}

func (v *View) close() {
	for session := range v.server.Sessions() {
		_ = session.Close()
	}
}

// shows reports whether the view has something that is offered.
func (v *View) shows(x item) bool {
	if !v.who.shows(x.at()) {
		return false
	}
	if v.who.Token == nil || v.who.Token.Only == nil {
		return true
	}
	e, tool := x.(*Entry)
	return tool && v.who.Token.Only(e.tool, e.names()) && v.runner.decide(e).Decision == router.Allowed
}

// apply makes the server have what s offers to this view, and nothing else. Only what
// looks different is touched there, for each touch is told to all sessions.
func (v *View) apply(s *snapshot) {
	now := s.all
	if v.key.stream != "" { // its own only: there may be as many views as streams
		now = s.of[v.key.stream]
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var gone, come []item
	for k, old := range v.shown {
		if x := now[k]; x == nil || !v.shows(x) {
			gone = append(gone, old)
			delete(v.shown, k)
		}
	}
	for k, x := range now {
		if !v.shows(x) {
			continue
		}
		if old := v.shown[k]; old == nil || !old.same(x) {
			come = append(come, x)
		}
		v.shown[k] = x
	}
	for _, x := range slices.Concat(gone, come) {
		v.ahead[listChanged[x.at().kind]].Add(1)
	}
	for _, x := range gone {
		v.ahead[listChanged[x.at().kind]].Add(-1)
		x.withdraw(v.server)
	}
	for _, x := range come {
		v.ahead[listChanged[x.at().kind]].Add(-1)
		x.offer(v)
	}
}

// tellOnce holds "list changed" back while apply is still changing that list: the SDK
// tells of it 10 ms after each change that no other one follows by then, which is in
// the middle where a machine is busy. The last change is told.
func (v *View) tellOnce(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if more := v.ahead[method]; more != nil && more.Load() > 0 {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

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
