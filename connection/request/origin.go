package request

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"xiaozhi/internal/nearby"
)

// maxOrigin is how much of an origin is told, in bytes.
const maxOrigin = 100

// OriginFits reports whether the web page that asks may do so: it lies on this
// machine, on this server, or is one that the settings name. What is no web page
// names no origin.
func (rd *Reader) OriginFits(r *http.Request) bool {
	origin := strings.ToLower(strings.TrimSuffix(r.Header.Get("Origin"), "/"))
	if origin == "" || slices.ContainsFunc(rd.o.Origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false
	}
	return isLoopback(u.Hostname()) || strings.EqualFold(u.Host, r.Host) && rd.ownName(u.Hostname())
}

// OwnHost reports whether a request asks for this server by an address, as this machine, by a name of its own, or by
// that of an origin that the settings name.
func (rd *Reader) OwnHost(r *http.Request) bool {
	host := strings.ToLower(hostOf(r.Host))
	return isLoopback(host) || rd.ownName(host) || slices.ContainsFunc(rd.o.Origins, func(origin string) bool {
		u, err := url.Parse(origin)
		return err == nil && u.Host != "" && strings.EqualFold(u.Hostname(), host)
	})
}

// ownName reports whether a host is an address or a name of this server. Any other
// name may lead here by somebody else's will (DNS rebinding).
func (rd *Reader) ownName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return slices.ContainsFunc(rd.Names(), func(name string) bool { return strings.EqualFold(name, host) })
}

// Names lists the names of this server, that of the machine first.
func (rd *Reader) Names() (own []string) {
	if name, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(name, ".")
		own = append(own, name, short, short+".local", short+".lan")
	}
	if rd.public != nil {
		own = append(own, rd.public.Hostname())
	}
	return append(own, rd.o.Hosts...)
}

// from returns the address that a request comes from, and whether that is this machine
// or a private network. Through a proxy that is not trusted, or that does not say
// who asks, everybody comes from afar; so they do where the public address of the
// server leads, if a proxy there leaves no sign.
func (rd *Reader) from(r *http.Request) (addr string, near bool) {
	addr = hostOf(r.RemoteAddr)
	near = nearby.IsHost(addr)
	if !Proxied(r) {
		return addr, near && (rd.public == nil || isLocalName(rd.public.Hostname()))
	}
	if !rd.o.TrustProxy {
		return addr, false
	}
	var told []string
	for _, name := range []string{"X-Real-Ip", "X-Forwarded-For"} {
		for _, value := range r.Header.Values(name) {
			for entry := range strings.SplitSeq(value, ",") {
				told = append(told, hostOf(strings.TrimSpace(entry)))
			}
		}
	}
	if len(told) == 0 {
		return addr, false
	}
	if slices.ContainsFunc(forwardedFor(r), func(a string) bool { return !nearby.IsHost(a) }) {
		near = false // a proxy before the one that is trusted may name addresses in this way only
	}
	// What a client says of itself comes first, what the proxy has seen last; of all
	// none may be public.
	return told[len(told)-1], near && !slices.ContainsFunc(told, func(a string) bool { return !nearby.IsHost(a) })
}

// forwardedFor returns the addresses in the header Forwarded (RFC 7239).
func forwardedFor(r *http.Request) (told []string) {
	for _, value := range r.Header.Values("Forwarded") {
		for pair := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || c == ';' }) {
			name, node, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				told = append(told, hostOf(strings.Trim(node, `"`)))
			}
		}
	}
	return told
}

// Remote returns the address that a request comes from: what a trusted proxy has seen, else the other end of the connection.
func (rd *Reader) Remote(r *http.Request) netip.Addr {
	name, _ := rd.from(r)
	addr, _ := netip.ParseAddr(name) // of no address: one for all
	return addr.Unmap()
}

// Told returns next as it is asked through a trusted proxy: RemoteAddr of its requests is what Remote returns, with port 0,
// so that what counts by address there does not count all of the proxy's clients as one. Other requests are as they came.
func (rd *Reader) Told(next http.Handler) http.Handler {
	if !rd.o.TrustProxy {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Proxied(r) {
			seen := *r // its context stays
			host := ""
			if addr := rd.Remote(r); addr.IsValid() {
				host = addr.String()
			}
			seen.RemoteAddr = net.JoinHostPort(host, "0")
			r = &seen
		}
		next.ServeHTTP(w, r)
	})
}

// Secure reports whether a browser has reached the server, or a trusted proxy in front of it, by https.
func (rd *Reader) Secure(r *http.Request) bool { return rd.secure(r) }

// secure reports whether nobody on the way of the request can read the answer.
func (rd *Reader) secure(r *http.Request) bool {
	if rd.o.TrustProxy {
		scheme, _, _ := forwardedBy(r, "", "")
		return scheme == "https" || scheme == "" && r.TLS != nil
	}
	return r.TLS != nil
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// IsPublic reports whether the public URL of a server leads there from the Internet; ""
// does not.
func IsPublic(publicURL string) bool {
	u, err := parsePublicURL(publicURL)
	return err == nil && u != nil && !isLocalName(u.Hostname())
}

// isLocalName reports whether a name or an address is one of a private network only.
func isLocalName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return nearby.IsHost(host)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(host, ".") || slices.ContainsFunc([]string{".local", ".lan", ".home", ".internal", ".home.arpa", ".localdomain", ".localhost", ".box"},
		func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}
