package external

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// OfferOptions describe an Offer. URL is needed, and Connect before Start.
type OfferOptions struct {
	URL string // of the endpoint, with its token: ws or wss
	// Connect serves the endpoint on a transport, as if it had made the handshake of 2024-11-05.
	Connect func(ctx context.Context, t sdk.Transport) (OfferSession, error)
	Name    string       // ours, for serverInfo; "" means xiaozhi
	Version string       // ours
	Log     *slog.Logger // nil: discarded

	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
	rand func() float64
}

// OfferSession is an endpoint that is served. Wait returns when that has ended; Close ends it and waits for its calls.
type OfferSession = interface {
	Wait() error
	Close() error
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
	session, err := o.options.Connect(ctx, &greeter{l, info})
	if err != nil {
		return err
	}
	o.log.Info("tools are offered to an endpoint")
	over := make(chan struct{})
	o.life.wg.Go(func() {
		defer close(over)
		_ = session.Wait()
	})
	select {
	case <-ctx.Done():
	case <-over:
	}
	_ = l.Close()
	_ = session.Close()
	return errors.Join(errEnd, l.cause())
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
