package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// Endpoint is a place of others to which this server connects by itself, and offers tools there.
type Endpoint struct {
	Name     string       // for the log; each has another one
	Where    string       // its address, without secrets
	Sources  []string     // of the tools: local, file, device, external, gateway; empty: all
	Rules    router.Rules // Allow and Deny, within what the settings allow
	Language text.Lang    // in which results are worded
}

// token is that of the endpoint: it is shown tools, and nothing else.
func (e Endpoint) token() *catalog.Token {
	gate := router.NewGate(router.Rules{Allow: e.Rules.Allow, Deny: e.Rules.Deny})
	return &catalog.Token{Name: e.Name, Only: func(t mcp.Tool, names []string) bool {
		return (len(e.Sources) == 0 || slices.Contains(e.Sources, sourceOf(t))) && !gate.Hides(t, names...)
	}}
}

// sourceOf is the source of a tool as settings name it: all that a device runs is one.
func sourceOf(t mcp.Tool) string {
	source, _, _ := strings.Cut(t.Source, ":")
	if t.OfDevice() {
		return mcp.SourceDevice
	}
	return source
}

// EndpointSession is an endpoint that is served. Wait returns when that has ended; Close ends it and waits for its calls.
type EndpointSession = interface {
	Wait() error
	Close() error
}

// endpointSession has a place among the sessions of the gateway.
type endpointSession struct {
	*sdk.ServerSession
	done func()
}

// Close ends the session and gives its place back.
func (s *endpointSession) Close() error {
	s.done()
	return s.ServerSession.Close()
}

var errClosing = errors.New("the gateway is closing")

// Serving returns a function that serves an endpoint on a transport, as if it had made the handshake of 2024-11-05: the
// tools that the gateway offers to others, as far as the endpoint is shown them and they can work without somebody to
// ask, within all limits of the gateway. A session ends with its transport, with ctx and with the gateway, and whoever
// began it closes it.
func (g *Gateway) Serving(e Endpoint) func(ctx context.Context, t sdk.Transport) (EndpointSession, error) {
	return func(ctx context.Context, t sdk.Transport) (EndpointSession, error) { return g.connect(ctx, e, t) }
}

func (g *Gateway) connect(ctx context.Context, e Endpoint, t sdk.Transport) (EndpointSession, error) {
	c := catalog.Caller{Token: e.token(), Remote: e.Where, Via: "offer", Language: e.Language.Pick("zh", "en")}
	g.follower.Wake()
	v, _ := g.views.Of(c, "") // there always is one of all streams
	s, err := v.Connect(catalog.WithCaller(ctx, c.Until(ctx)), t, catalog.Version2024)
	if err != nil {
		return nil, err
	}
	done, ok := g.sessions.open(c, func() { _ = s.Close() })
	if !ok {
		_ = s.Close()
		return nil, errClosing
	}
	return &endpointSession{s, done}, nil
}
