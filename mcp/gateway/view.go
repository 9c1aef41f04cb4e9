package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// views are all views there are, made when they are first asked for.
type views struct {
	gateway *Gateway

	mu    sync.Mutex
	byKey map[viewKey]*view
	now   *snapshot
}

// viewKey is whose view of what.
type viewKey struct {
	token  string // its name; "" for this machine without a token
	stream string // "" for all
}

// view is what one caller sees of one stream, or of all. It has a server and
// handlers of its own: a session that was opened here cannot leave it.
type view struct {
	gateway *Gateway
	key     viewKey
	who     caller // his token; what else is known of him is that of one request
	sees    func(stream string) bool
	server  *sdk.Server

	stateful http.Handler // sessions: initialize, GET, DELETE
	modern   http.Handler // 2026-07-28: every request for itself

	roots roots

	bareMu sync.Mutex
	bare   map[string]*bareLine // for older clients without a handshake, by revision

	mu    sync.Mutex
	shown offers // what the server has; its maps are this view's own
}

func (vs *views) init(g *Gateway) {
	vs.gateway, vs.byKey, vs.now = g, map[viewKey]*view{}, &snapshot{}
}

// of is a caller's view of a stream, "" for all. False: there is no such stream
// for him.
func (vs *views) of(c caller, stream string) (*view, bool) {
	key := viewKey{c.name(), stream}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if stream != "" && (!c.sees(stream) || !slices.Contains(vs.now.streams, stream)) {
		return nil, false
	}
	if v := vs.byKey[key]; v != nil {
		return v, true
	}
	v := newView(vs.gateway, key, c)
	v.apply(vs.now)
	vs.byKey[key] = v
	return v, true
}

// kept is of for a request of a session: the stream may be away for a while.
func (vs *views) kept(c caller, stream string) (*view, bool) {
	vs.mu.Lock()
	v := vs.byKey[viewKey{c.name(), stream}]
	vs.mu.Unlock()
	if v != nil {
		return v, true
	}
	return vs.of(c, stream)
}

// apply shows all views what is offered now.
func (vs *views) apply(s *snapshot) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	vs.now = s
	for _, v := range vs.byKey {
		v.apply(s)
	}
}

// current is what is offered now.
func (vs *views) current() *snapshot {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return vs.now
}

// all are the views there are.
func (vs *views) all() []*view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return slices.Collect(maps.Values(vs.byKey))
}

// sweep forgets views of streams that are gone and that nobody uses. It is called
// by what Close waits for.
func (vs *views) sweep() {
	var gone []*view
	vs.mu.Lock()
	for key, v := range vs.byKey {
		if key.stream != "" && !slices.Contains(vs.now.streams, key.stream) && v.unused() {
			delete(vs.byKey, key)
			gone = append(gone, v)
		}
	}
	vs.mu.Unlock()
	for _, v := range gone {
		vs.gateway.wg.Go(v.close) // it waits for calls that are under way
	}
}

// close ends the sessions of all views.
func (vs *views) close() {
	for _, v := range vs.all() {
		v.close()
	}
}

func newView(g *Gateway, key viewKey, c caller) *view {
	v := &view{gateway: g, key: key, who: c, shown: *newOffers()}
	v.sees = func(stream string) bool { return (key.stream == "" || stream == key.stream) && c.sees(stream) }
	v.server = sdk.NewServer(&sdk.Implementation{Name: "xiaozhi", Title: "小智 xiaozhi", Version: g.options.Version}, &sdk.ServerOptions{
		Instructions: instructions,
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
		CompletionHandler:       v.complete,
		SubscribeHandler:        v.subscribe,
		RootsListChangedHandler: v.rootsChanged,
		UnsubscribeHandler:      func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	v.server.AddReceivingMiddleware(v.rewrite)
	get := func(*http.Request) *sdk.Server { return v.server }
	// Access has looked at Host and Origin; the dispatcher has limited the body.
	v.stateful = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{DisableLocalhostProtection: true})
	v.modern = sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		DisableLocalhostProtection: true, Stateless: true, PropagateRequestCancellation: true,
	})
	return v
}

// instructions tell a model what this server is.
const instructions = "xiaozhi: voice devices and their tools. Tools are named stream.tool; each connected device is the stream device-<id>. " +
	"小智服务器：语音设备及其工具。工具名为 stream.tool，每台已连接的设备是一个 stream：device-<id>。"

// unused reports whether nobody has a session here.
func (v *view) unused() bool {
	v.bareMu.Lock()
	ours := len(v.bare)
	v.bareMu.Unlock()
	for range v.server.Sessions() {
		ours--
	}
	return ours >= 0
}

// close ends all sessions of the view.
func (v *view) close() {
	for session := range v.server.Sessions() {
		_ = session.Close()
	}
}

// apply makes the server have what s offers to this view, and nothing else.
func (v *view) apply(s *snapshot) {
	now := &s.offers
	if v.key.stream != "" { // its own only: there may be as many views as streams
		if now = s.of[v.key.stream]; now == nil {
			now = newOffers()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	follow(v, v.shown.tools, now.tools, v.addTool, v.server.RemoveTools)
	follow(v, v.shown.resources, now.resources, func(x *resource) { v.server.AddResource(x.def, v.read) }, v.server.RemoveResources)
	follow(v, v.shown.templates, now.templates, func(x *template) { v.server.AddResourceTemplate(x.def, v.read) }, v.server.RemoveResourceTemplates)
	follow(v, v.shown.prompts, now.prompts, func(x *prompt) { v.server.AddPrompt(x.def, v.getPrompt) }, v.server.RemovePrompts)
}

// offered is a tool, a resource, a template or a prompt.
type offered[T any] interface {
	in() string        // its stream
	same(other T) bool // they look the same from outside
}

// follow makes shown what the view may see of now, and the server with it. Only
// what looks another is touched there, for each touch is told to all sessions.
func follow[T offered[T]](v *view, shown, now map[string]T, add func(T), remove func(...string)) {
	for name := range shown {
		if x, there := now[name]; !there || !v.sees(x.in()) {
			remove(name)
			delete(shown, name)
		}
	}
	for name, x := range now {
		if !v.sees(x.in()) {
			continue
		}
		if old, known := shown[name]; !known || !old.same(x) {
			add(x)
		}
		shown[name] = x
	}
}

// addTool puts a tool into the server, which panics at some schemas.
func (v *view) addTool(e *entry) {
	defer func() {
		if p := recover(); p != nil {
			v.gateway.log.Warn("tool cannot be offered", "tool", e.name, "why", fmt.Sprint(p))
		}
	}()
	v.server.AddTool(e.def, v.call)
}

// tool is the entry of a full name, or of a bare one in a view of one stream.
func (v *view) tool(name string) (*entry, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.shown.tools[name]
	if !ok && v.key.stream != "" {
		e, ok = v.shown.tools[v.key.stream+"."+name]
	}
	return e, ok
}

// tools are the entries that the view shows, by name.
func (v *view) tools() []*entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]*entry, 0, len(v.shown.tools))
	for _, name := range slices.Sorted(maps.Keys(v.shown.tools)) {
		out = append(out, v.shown.tools[name])
	}
	return out
}
