package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"xiaozhi/internal/nearby"
)

// What a transport keeps and how long it waits.
const (
	idleConns        = 512 // of all services
	idleConnsPerHost = 256 // a hundred devices think, speak and prepare the next sentence
	idleTime         = 90 * time.Second
	handshakeTime    = 2 * time.Second // of TLS, after connecting
	pingAfter        = 15 * time.Second
	pingTime         = 3 * time.Second
	maxRedirects     = 3
	connectTime      = 1400 * time.Millisecond // two addresses out of reach are known in 3 s
)

// HTTPOptions are the settings of [NewHTTPClient]. The zero value works.
type HTTPOptions struct {
	Connect time.Duration // to be connected, TLS apart; 1.4 s if 0
	// Proxy is the URL of an HTTP or SOCKS5 proxy; "" takes that of the environment
	// (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), "none" none.
	Proxy   string
	Careful bool // as in [Account]
}

// HTTP is the http.RoundTripper of [NewHTTPClient]: it knows whether a
// connection is there for the next request. It may be used by any number of
// goroutines at once.
type HTTP struct {
	*http.Transport
	live        atomic.Int64 // connections
	busy        atomic.Int64 // requests under way, their replies' bodies included
	multiplexed atomic.Bool  // HTTP/2: one connection is enough for all requests
	warming     atomic.Bool  // a connection is being opened in advance
	retired     atomic.Bool  // no connection is kept
}

// Retire has a client of [NewHTTPClient] keep no connection from now on: those that wait are closed, and those of
// requests that go on with them. It can still be used, for a new connection each time.
func Retire(c *http.Client) {
	t, ok := c.Transport.(*HTTP)
	if ok {
		t.retired.Store(true)
	}
	c.CloseIdleConnections()
}

// NewHTTPClient makes the client that all roles of one section share: it keeps
// connections for the next turn and bounds connecting. It has no overall time limit: each
// request has its own. A proxy that is no URL is an error.
func NewHTTPClient(o HTTPOptions) (*http.Client, error) {
	proxy, err := proxyOf(o.Proxy)
	if err != nil {
		return nil, err
	}
	t := &HTTP{}
	t.Transport = &http.Transport{
		Proxy:               proxy,
		DialContext:         t.dial(cmp.Or(o.Connect, connectTime), controlOf(o.Careful)),
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: handshakeTime,
		MaxIdleConns:        idleConns,
		MaxIdleConnsPerHost: idleConnsPerHost,
		IdleConnTimeout:     idleTime,
		DisableCompression:  true,     // a compressed stream may be held back
		ReadBufferSize:      16 << 10, // 340 ms of PCM at once
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("the proxy answers " + resp.Status)}
		},
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime},
	}
	return &http.Client{Transport: t, CheckRedirect: stayHome}, nil
}

// stayHome follows redirections within a server only, which is one port of a host by one scheme: net/http would hand the
// headers in which most services want their key, and the body, to any other. The answer is that of the redirection then,
// whose status says that it is none.
func stayHome(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects || serverOf(req.URL) != serverOf(via[0].URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

// serverOf names what a URL asks: scheme, host and port.
func serverOf(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	switch scheme {
	case "ws":
		scheme = "http"
	case "wss":
		scheme = "https"
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[scheme])
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// Control looks at an address before it is connected to, as that of a net.Dialer does.
type Control = func(network, address string, c syscall.RawConn) error

// controlOf is that of connections to a service; nil: they go everywhere.
func controlOf(careful bool) Control {
	if careful {
		return nearby.Careful
	}
	return nil
}

// TCP connects to a service that has a wire of its own.
func (a Account) TCP(ctx context.Context, address string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: limit, Control: controlOf(a.Careful)}
	return d.DialContext(ctx, "tcp", address)
}

// proxyOf returns the function that chooses a proxy. It never shows the URL, which may
// hold a password.
func proxyOf(setting string) (func(*http.Request) (*url.URL, error), error) {
	switch setting {
	case "":
		return http.ProxyFromEnvironment, nil
	case "none":
		return nil, nil
	}
	u, err := url.Parse(setting)
	if err != nil || u.Host == "" {
		return nil, errors.New("proxy: it is not a URL with a host")
	}
	switch scheme := strings.ToLower(u.Scheme); scheme {
	case "http", "https", "socks5", "socks5h":
		return http.ProxyURL(u), nil
	default:
		return nil, fmt.Errorf("proxy: it begins with %q, not with http, https or socks5", scheme)
	}
}

// dial connects, and counts what is connected. A peer that is gone without a
// word is noticed after half a minute, so that no request waits for it.
func (t *HTTP) dial(limit time.Duration, control Control) func(context.Context, string, string) (net.Conn, error) {
	dialer := &net.Dialer{
		Timeout:         limit,
		Control:         control,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		t.live.Add(1)
		return &countedConn{Conn: conn, gone: sync.OnceFunc(func() { t.live.Add(-1) })}, nil
	}
}

// countedConn tells when it is closed.
type countedConn struct {
	net.Conn
	gone func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.gone()
	return c.Conn.Close()
}

// errWarmEnded is the cause of a warm-up that was given up. Its connection may be
// another request's by then: net/http hands it on before the reply without a body is
// taken, and closes it when the warm-up ends in between.
var errWarmEnded = errors.New("the warm-up was given up")

// RoundTrip makes one request, and makes it again if it was on the connection of a
// warm-up that was given up. It sends it once more if the server closes the kept
// connection at that moment.
func (t *HTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(req.Header["Idempotency-Key"]) == 0 {
		req = req.Clone(req.Context())
		req.Header["Idempotency-Key"] = []string{} // net/http takes it as a sign, and does not send it
	}
	if scheme, socket := map[string]string{"ws": "http", "wss": "https"}[req.URL.Scheme]; socket { // of a service that has sockets, too
		req = req.Clone(req.Context())
		req.URL.Scheme = scheme
	}
	t.busy.Add(1)
	done := sync.OnceFunc(func() { t.busy.Add(-1) })
	resp, err := t.Transport.RoundTrip(req)
	if errors.Is(err, errWarmEnded) && req.Context().Err() == nil && req.GetBody != nil {
		if req.Body, err = req.GetBody(); err == nil {
			resp, err = t.Transport.RoundTrip(req)
		}
	}
	if err != nil {
		done()
		return nil, err
	}
	t.multiplexed.Store(resp.ProtoMajor == 2)
	noteDate(req, resp)
	resp.Body = &countedBody{ReadCloser: resp.Body, done: func() {
		done()
		if t.retired.Load() {
			t.CloseIdleConnections()
		}
	}}
	unpack(resp)
	return resp, nil
}

// countedBody tells when it is closed.
type countedBody struct {
	io.ReadCloser
	done func()
}

// Close closes the body.
func (b *countedBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// waiting reports whether a connection waits for the next request.
func (t *HTTP) waiting() bool {
	live := t.live.Load()
	return live > t.busy.Load() || live > 0 && t.multiplexed.Load()
}

// Wrapper is an http.RoundTripper that makes its requests by another one.
type Wrapper interface{ Unwrap() http.RoundTripper }

// warmTime bounds Warm: connecting, the TLS handshake and one short reply.
const warmTime = 5 * time.Second

// Warm opens a connection for the next request to a service, if none waits for it
// already. It makes a request that costs nothing and takes any answer for a good one:
// what counts is the connection, which net/http then keeps. One goroutine at a time does
// so; the others return at once.
func (a Account) Warm(ctx context.Context, client *http.Client, ask func(ctx context.Context) (*http.Response, error)) error {
	inner := client.Transport
	for wrapped, ok := inner.(Wrapper); ok; wrapped, ok = inner.(Wrapper) {
		inner = wrapped.Unwrap()
	}
	if t, ok := inner.(*HTTP); ok {
		if !t.warming.CompareAndSwap(false, true) {
			return nil
		}
		defer t.warming.Store(false)
		if t.waiting() { // looked at last: another goroutine may have been at it until now
			return nil
		}
	}
	ownCtx, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	defer giveUp(nil)
	defer context.AfterFunc(ctx, func() { giveUp(errWarmEnded) })()
	reqCtx, cancel := context.WithTimeoutCause(ownCtx, warmTime, ErrStalled)
	defer cancel()
	resp, err := ask(reqCtx)
	if err != nil {
		return a.Wrap(ctx, reqCtx, "connect", err)
	}
	// A reply to HEAD has no body; one that has all the same costs the connection only.
	_, _ = io.CopyN(io.Discard, resp.Body, MaxErrorBody)
	_ = resp.Body.Close()
	return nil
}

// Counts returns how many connections there are, and how many requests are under way.
func (t *HTTP) Counts() (live, busy int) { return int(t.live.Load()), int(t.busy.Load()) }
