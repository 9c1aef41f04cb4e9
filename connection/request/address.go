package request

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Paths that devices are told.
const (
	TalkPath   = "/xiaozhi/v1/"
	OTAPath    = "/xiaozhi/ota/"
	VisionPath = "/mcp/vision/explain"
)

// BaseURL returns how the sender of r reaches this server by HTTP: the public
// URL, else its own Host. The path has no last slash.
//
// Devices send a Host without its port, so the port of the listener that was
// reached is added, unless a trusted proxy says what the outside looks like.
func (rd *Reader) BaseURL(r *http.Request) *url.URL {
	if rd.public != nil {
		return rd.public
	}
	scheme, host, forwarded := "http", r.Host, false
	if r.TLS != nil {
		scheme = "https"
	}
	if rd.o.TrustProxy {
		scheme, host, forwarded = forwardedBy(r, scheme, host)
	}
	name, port := splitHost(host)
	localName, localPort := localAddr(r)
	if name == "" {
		// No Host, or one that no device could use: the address that was reached.
		name, port = localName, localPort
	}
	if port == "" && !forwarded {
		port = localPort
	}
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		if strings.Contains(name, ":") {
			name = "[" + name + "]"
		}
		return &url.URL{Scheme: scheme, Host: name}
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port)}
}

// forwardedBy reads the headers of a proxy that passes the request on. Only the
// first entry of each list counts: it is the client's.
func forwardedBy(r *http.Request, scheme, host string) (string, string, bool) {
	first := func(name string) string {
		v, _, _ := strings.Cut(r.Header.Get(name), ",")
		return strings.TrimSpace(v)
	}
	proto, fhost, fport := first("X-Forwarded-Proto"), first("X-Forwarded-Host"), first("X-Forwarded-Port")
	switch strings.ToLower(proto) {
	case "https", "wss":
		scheme = "https"
	case "http", "ws":
		scheme = "http"
	}
	if fhost != "" {
		host = fhost
	}
	if name, port := splitHost(host); port == "" && name != "" && isPort(fport) {
		host = net.JoinHostPort(name, fport)
	}
	return scheme, host, proto != "" || fhost != "" || fport != ""
}

// localAddr is the listener's side of the request's connection.
func localAddr(r *http.Request) (name, port string) {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ap, err := netip.ParseAddrPort(addr.String()); err == nil {
			return ap.Addr().Unmap().WithZone("").String(), strconv.Itoa(int(ap.Port()))
		}
	}
	return "127.0.0.1", ""
}

// splitHost takes a Host apart. A name that may not stand in a URL gives "".
func splitHost(host string) (name, port string) {
	if h, p, err := net.SplitHostPort(host); err == nil {
		name, port = h, p
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if port != "" && !isPort(port) {
		return "", ""
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.WithZone("").String(), port
	}
	if name == "" || len(name) > 253 {
		return "", ""
	}
	for _, c := range name {
		if !strings.ContainsRune(letters, c) {
			return "", ""
		}
	}
	return name, port
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

func isPort(p string) bool {
	ap, err := netip.ParseAddrPort("0.0.0.0:" + p)
	return err == nil && ap.Port() != 0
}

// TalkURL returns the WebSocket address below base.
func TalkURL(base *url.URL) string {
	scheme := "ws"
	if base.Scheme == "https" {
		scheme = "wss"
	}
	return scheme + "://" + base.Host + base.Path + TalkPath
}

// DeviceCanUse reports whether firmware can read the address: it takes the
// first colon for the port's and so knows no IPv6 literals (docs/protocol.md 2.1).
func DeviceCanUse(base *url.URL) bool {
	return !strings.Contains(base.Hostname(), ":")
}

// IsLoopback reports whether only this machine can use the host.
func IsLoopback(host string) bool { return isLoopback(host) }

// parsePublicURL parses the address that devices are told. The schemes ws and wss
// mean http and https. An empty text gives nil.
func parsePublicURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("connection: public url: %w", err)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "http"
	case "https", "wss":
		u.Scheme = "https"
	default:
		return nil, fmt.Errorf("connection: public url %q does not begin with http:// or https://", text)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("connection: public url %q names no host", text)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("connection: public url %q may hold only scheme, host, port and path", u.Redacted())
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}
