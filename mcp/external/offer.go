package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// offerRefresh is how often the tools on offer are compared with the router's.
const offerRefresh = 5 * time.Second

// OfferOptions describe an Offer. URL and Tools are needed.
type OfferOptions struct {
	URL     string         // of the endpoint, with its token: ws or wss
	Tools   *router.Router // the tools on offer, and their router; Stop does not close it
	Name    string         // ours, for serverInfo; "" means xiaozhi
	Version string         // ours
	Log     *slog.Logger   // nil: discarded

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
	rand func() float64
}

// Offer gives our tools to an endpoint of others: we dial out and are the
// MCP server on that socket. It dials again after each loss.
type Offer struct {
	options OfferOptions
	log     *slog.Logger
	mask    mask
	pause   backoff
	life    life
}

// NewOffer makes an offer, which does nothing before Start. The error never
// holds the address.
func NewOffer(o OfferOptions) (*Offer, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return nil, errors.New("url: this is no address such as wss://example.org/mcp/?token=…")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.rand == nil {
		o.rand = rand.Float64
	}
	if o.Name == "" {
		o.Name = "xiaozhi"
	}
	return &Offer{
		options: o, log: o.Log.With("endpoint", PublicURL(o.URL)),
		mask: newMask(Config{URL: o.URL}), pause: backoff{rand: o.rand},
	}, nil
}

// Start begins to dial and returns at once. The offer ends with ctx or Stop. A
// second Start does nothing.
func (o *Offer) Start(ctx context.Context) error {
	return o.life.start(ctx, "offer tools", o.run)
}

// Stop hangs up and waits. It may be called many times.
func (o *Offer) Stop() error {
	o.life.end()
	o.life.wg.Wait()
	return nil
}

func (o *Offer) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := o.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= steadyTime {
			o.pause.tries = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(o.pause.next(o.log, "endpoint is away", o.mask.err(err))):
		}
	}
}

// attempt dials once and serves until the socket ends.
func (o *Offer) attempt(ctx context.Context) error {
	conn, err := dialSocket(ctx, o.options.URL, websocket.Dialer{NetDialContext: o.options.dial}, nil)
	if err != nil {
		return err
	}
	l := newLink(newSocket(conn, maxPeerFrame), pingEvery, o.log)
	defer l.wait()
	defer func() { _ = l.Close() }()
	info := &sdk.Implementation{Name: o.options.Name, Version: o.options.Version}
	server := sdk.NewServer(info, &sdk.ServerOptions{Logger: o.log, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}})
	shown := o.show(server, nil)
	session, err := server.Connect(ctx, &greeter{l, info}, &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{
		InitializeParams:  &sdk.InitializeParams{ProtocolVersion: oldestVersion},
		InitializedParams: &sdk.InitializedParams{},
	}})
	if err != nil {
		return err
	}
	o.log.Info("tools offered to an endpoint", "tools", len(shown))
	over := make(chan struct{})
	o.life.wg.Go(func() {
		defer close(over)
		_ = session.Wait()
	})
	ticker := time.NewTicker(offerRefresh)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			shown = o.show(server, shown)
			continue
		case <-ctx.Done():
		case <-over:
		}
		break
	}
	_ = l.Close()
	_ = session.Close()
	return errors.Join(errEnd, l.cause())
}

// show makes the tools of server those of the router, which were shown before.
func (o *Offer) show(server *sdk.Server, before []router.Offer) []router.Offer {
	// Nobody can be asked at the other end of the endpoint.
	now := slices.DeleteFunc(o.options.Tools.Offers(), func(f router.Offer) bool { return f.Consent })
	same := func(a, b router.Offer) bool {
		return a.LLMName == b.LLMName && a.Tool.Description == b.Tool.Description && string(a.Tool.Schema) == string(b.Tool.Schema)
	}
	for _, old := range before {
		if !slices.ContainsFunc(now, func(f router.Offer) bool { return f.LLMName == old.LLMName }) {
			server.RemoveTools(old.LLMName)
		}
	}
	for _, f := range now {
		if !slices.ContainsFunc(before, func(old router.Offer) bool { return same(old, f) }) {
			o.add(server, f)
		}
	}
	return now
}

// add puts one tool on offer. The SDK panics on schemas that it does not like.
func (o *Offer) add(server *sdk.Server, f router.Offer) {
	defer func() {
		if p := recover(); p != nil {
			o.log.Warn("tool cannot be offered", "tool", f.Tool.Name, "why", fmt.Sprint(p))
		}
	}()
	hints := &sdk.ToolAnnotations{DestructiveHint: f.Tool.Annotations.Destructive}
	if r := f.Tool.Annotations.ReadOnly; r != nil {
		hints.ReadOnlyHint = *r
	}
	if i := f.Tool.Annotations.Idempotent; i != nil {
		hints.IdempotentHint = *i
	}
	server.AddTool(&sdk.Tool{
		Name: f.LLMName, Description: f.Tool.Description, InputSchema: sanitise(f.Tool.Schema), Annotations: hints,
	}, o.call)
}

// call runs a tool for the endpoint: the true result is waited for, also of a control.
func (o *Offer) call(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	p, refused := o.options.Tools.Prepare(mcp.Call{ID: "endpoint", Name: r.Params.Name, Arguments: string(r.Params.Arguments), By: mcp.ByProgram})
	if refused != nil {
		return outcome(*refused), nil
	}
	return outcome(o.options.Tools.Run(ctx, p)), nil
}

// outcome is a tool's ActionResponse as MCP has it. What only a conversation can
// carry out is a failure here.
func outcome(r mcp.ActionResponse) *sdk.CallToolResult {
	o := r.Outcome("")
	if o.Handler != nil {
		o = mcp.Failure(message.Both("external/talk-only"), "", "")
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{}, IsError: o.Failed}
	for _, block := range o.Blocks {
		switch block := block.(type) {
		case mcp.Image:
			out.Content = append(out.Content, &sdk.ImageContent{MIMEType: block.MIMEType, Data: block.Data})
		case string:
			out.Content = append(out.Content, &sdk.TextContent{Text: block})
		}
	}
	return out
}

// greeter answers initialize itself, as often as it is asked: an endpoint that
// stands between many devices and one tool server shakes hands anew for each of
// them, over the same socket, which the SDK takes for a mistake.
type greeter struct {
	*link
	info *sdk.Implementation
}

// Connect makes greeter an sdk.Transport: it is its own connection.
func (g *greeter) Connect(ctx context.Context) (sdk.Connection, error) {
	if _, err := g.link.Connect(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// Read gives everything but the handshake.
func (g *greeter) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := g.link.Read(ctx)
		r, ok := m.(*jsonrpc.Request)
		switch {
		case err != nil || !ok:
			return m, err
		case r.Method == "initialize" && r.IsCall():
			if err := g.greet(ctx, r); err != nil {
				return nil, err
			}
		case r.Method == "notifications/initialized":
		default:
			return m, nil
		}
	}
}

func (g *greeter) greet(ctx context.Context, r *jsonrpc.Request) error {
	var asked sdk.InitializeParams
	_ = json.Unmarshal(r.Params, &asked) // an odd request gets the oldest revision
	version := oldestVersion
	if slices.Contains([]string{"2025-03-26", "2025-06-18", legacyVersion}, asked.ProtocolVersion) {
		version = asked.ProtocolVersion
	}
	result, err := json.Marshal(&sdk.InitializeResult{
		ProtocolVersion: version, ServerInfo: g.info,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	if err != nil {
		return err
	}
	return g.Write(ctx, &jsonrpc.Response{ID: r.ID, Result: result})
}
