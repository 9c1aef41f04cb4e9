package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// route is the way of one socket to a service: directly, or through a proxy of any kind that
// plain requests may go through too. It is for the goroutine that dials.
type route struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	choose func(*http.Request) (*url.URL, error) // nil: no proxy
	inner  *tls.Config                           // of the service; nil: as usual
	secure bool                                  // the proxy itself is spoken to by TLS

	mu    sync.Mutex
	conn  net.Conn // the connection on which the upgrade is under way
	ended bool
}

// through sets a dialer to go this way.
func (r *route) through(d *websocket.Dialer) {
	d.NetDialContext = r.connect
	if r.choose != nil {
		d.Proxy = r.proxy
	}
}

// proxy chooses the proxy of a socket, by a scheme that the library knows.
func (r *route) proxy(req *http.Request) (*url.URL, error) {
	chosen, err := r.choose(req)
	if err != nil || chosen == nil {
		return nil, err
	}
	p := *chosen
	switch p.Scheme = strings.ToLower(p.Scheme); p.Scheme {
	case "socks5h": // it resolves names in either case
		p.Scheme = "socks5"
	case "https":
		p.Scheme, r.secure = "http", true
		if p.Port() == "" {
			p.Host = net.JoinHostPort(p.Hostname(), "443")
		}
	}
	return &p, nil
}

// connect opens the connection to the service or to the proxy.
func (r *route) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.conn = conn
	ended := r.ended
	r.mu.Unlock()
	if ended {
		_ = conn.Close()
	}
	if !r.secure {
		return conn, nil
	}
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		name = address
	}
	outer := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: r.inner != nil && r.inner.InsecureSkipVerify}) //nolint:gosec // as the user asks for it
	if err := outer.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return outer, nil
}

// end ends the upgrade that is under way: the library waits for its answer whatever becomes of
// the context.
func (r *route) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.conn != nil {
		_ = r.conn.Close()
	}
}
