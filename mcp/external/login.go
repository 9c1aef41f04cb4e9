package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"xiaozhi/internal/nearby"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external/oauth"
)

const (
	loginLimit = 15 * time.Second // of one request of a login
	maxGrant   = 1 << 20          // bytes of one answer

	browseLimit = 10 * time.Minute // of a person who is in a browser while the server is connected
)

var errLoginMuch = fmt.Errorf("an answer is longer than %d bytes", maxGrant)

// loginClient makes the client that asks the authorization servers of a server, whose addresses the server names: none at
// which machines find their own settings, and none of a private network for a server of the Internet.
func loginClient(address string) *http.Client {
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&authorities{of: address}).dial,
		TLSHandshakeTimeout: dialLimit, IdleConnTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
	}
	return &http.Client{
		Timeout: loginLimit, Transport: boundedTripper{base},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
				return errElsewhere
			}
			return nil
		},
	}
}

// authorities connects to the authorization servers of one server.
type authorities struct {
	of string // the server's address

	mu    sync.Mutex
	known bool
	home  bool // the server is of a network at home itself
}

func (a *authorities) dial(ctx context.Context, network, address string) (net.Conn, error) {
	home := a.atHome(ctx)
	d := net.Dialer{Timeout: dialLimit, Control: func(network, at string, c syscall.RawConn) error {
		if err := nearby.Careful(network, at, c); err != nil || home {
			return err
		}
		if to, err := netip.ParseAddrPort(at); err != nil || nearby.NotPublic(to.Addr()) {
			return errInside
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

var errInside = errors.New("a server of the Internet names an authorization server of a private network, which is not asked")

// atHome reports whether the server is of a private network, by its addresses now.
func (a *authorities) atHome(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known {
		return a.home
	}
	u, err := url.Parse(a.of)
	if err != nil {
		return false
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return false // asked again the next time
	}
	a.known, a.home = true, slices.ContainsFunc(all, nearby.NotPublic)
	return a.home
}

// boundedTripper bounds the answers that come back.
type boundedTripper struct{ base http.RoundTripper }

// RoundTrip sends one request.
func (b boundedTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.base.RoundTrip(r)
	if err == nil {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxGrant}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

// Read reads until the limit.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLoginMuch
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// ErrNoLogin says that a server is asked without a login: it is a program, or its entry has an Authorization header.
var ErrNoLogin = errors.New("this server is not asked by a login")

// Login begins a login of a person to one of the servers. link is to be opened in their browser, which is led back to
// redirect. The error is [mcp.ErrClosed] if there is no such server.
func (set *Set) Login(ctx context.Context, name, redirect string) (link string, err error) {
	s := set.Server(name)
	switch {
	case s == nil:
		return "", mcp.ErrClosed
	case s.login == nil:
		return "", ErrNoLogin
	}
	link, err = s.login.Begin(ctx, redirect)
	return link, s.masked(err)
}

// masked is an error of a login without secrets, for people.
func (s *Server) masked(err error) error {
	if err == nil || errors.Is(err, oauth.ErrUnasked) || errors.Is(err, oauth.ErrState) {
		return err
	}
	return errors.New(s.mask.err(err))
}

// LoggedIn takes the query with which a browser came back from a login, and returns the name of the server that it was to.
// The error is [oauth.ErrState] for what belongs to none.
func (set *Set) LoggedIn(ctx context.Context, answer url.Values) (name string, err error) {
	for _, s := range set.list(nil) {
		if s.login == nil || !s.login.Owns(answer) {
			continue
		}
		if err := s.login.Finish(ctx, answer); err != nil {
			return s.name, s.masked(err)
		}
		wake(s.redial)
		set.changed()
		return s.name, nil
	}
	return "", oauth.ErrState
}

// Logout forgets what a server has granted, and connects again. The error is [mcp.ErrClosed] if there is no such server.
func (set *Set) Logout(ctx context.Context, name string) error {
	s := set.Server(name)
	switch {
	case s == nil:
		return mcp.ErrClosed
	case s.login == nil:
		return ErrNoLogin
	}
	s.login.Forget(ctx)
	wake(s.redial)
	set.changed()
	return nil
}
