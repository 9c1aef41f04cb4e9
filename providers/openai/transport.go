package openai

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// What a transport keeps and how long it waits.
const (
	idleConns        = 512 // of all services
	idleConnsPerHost = 256 // a hundred devices think, speak and prepare the next sentence
	idleTime         = 90 * time.Second
	handshakeTime    = 2 * time.Second // of TLS, after Timeouts.Connect
	pingAfter        = 15 * time.Second
	pingTime         = 3 * time.Second
)

// transport is the http.RoundTripper of NewHTTPClient: it knows whether a
// connection is there for the next request. It may be used by any number of
// goroutines at once.
type transport struct {
	*http.Transport
	live        atomic.Int64 // connections
	busy        atomic.Int64 // requests under way, their replies' bodies included
	multiplexed atomic.Bool  // HTTP/2: one connection is enough for all requests
	warming     atomic.Bool  // a connection is being opened in advance
}

// NewHTTPClient makes the client that all roles of one Options share: it keeps
// connections for the next turn, bounds connecting, and goes through no proxy
// unless o.Proxy says so. It has no overall time limit: each request has its own.
func NewHTTPClient(o Options) (*http.Client, error) {
	t := &transport{}
	t.Transport = &http.Transport{
		DialContext:         t.dial(o.Timeouts.withDefaults().Connect),
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: handshakeTime,
		MaxIdleConns:        idleConns,
		MaxIdleConnsPerHost: idleConnsPerHost,
		IdleConnTimeout:     idleTime,
		DisableCompression:  true,     // a compressed stream may be held back
		ReadBufferSize:      16 << 10, // 340 ms of PCM at once
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTime},
	}
	switch o.Proxy {
	case "":
	case "env":
		t.Proxy = http.ProxyFromEnvironment
	default:
		proxy, err := url.Parse(o.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, fmt.Errorf("%s: proxy: it is no URL", orDefault(o.Name, "openai"))
		}
		t.Proxy = http.ProxyURL(proxy)
	}
	return &http.Client{Transport: t}, nil
}

// dial connects, and counts what is connected. A peer that is gone without a
// word is noticed after half a minute, so that no request waits for it.
func (t *transport) dial(limit time.Duration) func(context.Context, string, string) (net.Conn, error) {
	dialer := &net.Dialer{
		Timeout:         limit,
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

// RoundTrip makes one request. It sends it once more if the server closes the kept
// connection at that moment.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(req.Header["Idempotency-Key"]) == 0 {
		req = req.Clone(req.Context())
		req.Header["Idempotency-Key"] = []string{} // net/http takes it as a sign, and does not send it
	}
	t.busy.Add(1)
	done := sync.OnceFunc(func() { t.busy.Add(-1) })
	resp, err := t.Transport.RoundTrip(req)
	if err != nil {
		done()
		return nil, err
	}
	t.multiplexed.Store(resp.ProtoMajor == 2)
	resp.Body = &countedBody{ReadCloser: resp.Body, done: done}
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

// warm reports whether a connection waits for the next request.
func (t *transport) warm() bool {
	live := t.live.Load()
	return live > t.busy.Load() || live > 0 && t.multiplexed.Load()
}
