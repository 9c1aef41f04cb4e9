package external

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/external/oauth"
)

const (
	dialLimit   = 10 * time.Second // to reach a server
	probeLimit  = 5 * time.Second  // of the first try over HTTP, which a server may not understand
	shakeLimit  = 15 * time.Second // of a handshake
	launchLimit = 90 * time.Second // of a handshake with a program, which may install itself first
)

// The revisions that a handshake can begin with. "" is the newest, by
// server/discover, with initialize after it.
const (
	legacyVersion = "2025-11-25" // the newest that begins with initialize
	oldestVersion = "2024-11-05" // what dialled-in tool servers are written for
)

// way is one way to connect: a transport, and which handshake to begin with.
type way struct {
	transport Transport
	version   string
	limit     time.Duration // of the handshake
}

// ways are the ways to try, in their order.
func (c Config) ways() []way {
	limit := shakeLimit
	if c.Transport == Stdio {
		limit = launchLimit
	}
	first := limit
	if c.Transport == HTTP {
		first = probeLimit
	}
	var list []way
	if !c.Legacy && c.Transport != SSE { // that one is older than the newest handshake
		list = append(list, way{c.Transport, "", first})
	}
	list = append(list, way{c.Transport, legacyVersion, limit})
	if c.Guessed {
		list = append(list, way{SSE, legacyVersion, limit})
	}
	return list
}

// line is an open way: the SDK's transport, and what must be ended with it.
type line struct {
	transport sdk.Transport
	lost      <-chan error // nil: the transport itself tells
	cause     func() error // why the peer's end came; nil: unknown
	hurry     func()       // if not nil, called before the session is closed with calls still running
	end       func()       // after the session is closed; it waits
}

// opener opens ways to one server. Tests put others in its place.
type opener func(ctx context.Context, w way) (*line, error)

// errUnopened marks what another handshake will not mend.
var errUnopened = errors.New("cannot connect")

// dialer opens what a config says.
type dialer struct {
	config  Config
	environ []string
	log     *slog.Logger
	mask    mask
	wrote   func(line string)                                                    // gets what programs write to their standard error; nil: nobody does
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: the network
	login   *oauth.Login                                                         // nil: there is none
}

func (d *dialer) open(ctx context.Context, w way) (*line, error) {
	switch w.transport {
	case Stdio:
		return d.launch()
	case WebSocket:
		return d.websocket(ctx)
	default:
		return d.web(w.transport)
	}
}

func (d *dialer) launch() (*line, error) {
	p, err := launch(d.config, d.environ, d.log, d.mask, d.wrote)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnopened, err)
	}
	l := newLink(newLines(p.stdout, p.stdin), 0, d.log)
	end := func() {
		_ = l.Close()
		p.end()
		l.wait()
	}
	cause := func() error {
		if l.over() { // a program's output ends a moment before it does, or it goes on without
			select {
			case <-p.over:
			case <-time.After(pipeGrace):
			}
		}
		select {
		case <-p.over:
			return fmt.Errorf("%w: %v", errExited, p.cmd.ProcessState)
		default:
			return l.cause()
		}
	}
	return &line{transport: l, cause: cause, end: end}, nil
}

func (d *dialer) websocket(ctx context.Context) (*line, error) {
	header := http.Header{}
	for name, value := range d.config.Headers {
		header.Set(name, value)
	}
	conn, err := dialSocket(ctx, d.config.URL, websocket.Dialer{NetDialContext: d.dial, Subprotocols: []string{"mcp"}}, header)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnopened, err)
	}
	return socketLine(newLink(newSocket(conn, maxFrame), pingEvery, d.log)), nil
}

// dialSocket opens a WebSocket. The error names the answer of a server that did not want one.
func dialSocket(ctx context.Context, address string, ws websocket.Dialer, header http.Header) (*websocket.Conn, error) {
	ws.Proxy, ws.HandshakeTimeout = http.ProxyFromEnvironment, dialLimit
	conn, resp, err := ws.DialContext(ctx, address, header) //nolint:bodyclose // the library has read it
	if resp != nil && errors.Is(err, websocket.ErrBadHandshake) {
		return nil, fmt.Errorf("the server answers %s", resp.Status)
	}
	return conn, err
}

func socketLine(l *link) *line {
	end := func() {
		_ = l.Close()
		l.wait()
	}
	return &line{transport: l, cause: l.cause, end: end}
}

func (d *dialer) web(t Transport) (*line, error) {
	server, err := url.Parse(d.config.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnopened, errAddress)
	}
	dial := d.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialLimit}).DialContext
	}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: dialLimit, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4,
	}
	way := &roundTripper{base: base, server: server, headers: d.config.Headers, first: t == SSE, lost: make(chan error, 1)}
	client := &http.Client{Transport: way}
	streamable := &sdk.StreamableClientTransport{Endpoint: d.config.URL, HTTPClient: client, MaxEventSize: maxFrame}
	switch {
	case d.login == nil:
	case t == SSE:
		way.login = d.login // the SDK has none there
	default:
		streamable.OAuthHandler = d.login
	}
	out := &line{
		transport: streamable,
		lost:      way.lost, cause: func() error { return nil },
		hurry: func() { way.hurry.Store(true) }, end: base.CloseIdleConnections,
	}
	if t == SSE {
		out.transport = &sdk.SSEClientTransport{Endpoint: d.config.URL, HTTPClient: client, MaxEventSize: maxFrame}
	}
	return out, nil
}
