package access

import (
	"net/http"
	"strings"
)

// TrustedTypes is the name of the only policy by which scripts of the console may make HTML of text.
const TrustedTypes = "console"

// Content policies: of what shows nothing, and of pages, which takes the sources of sockets.
const (
	nothingShown = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	pagePolicy   = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; connect-src 'self'"
	pageLimits   = "; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types " + TrustedTypes
)

// Headers returns next with the headers on every answer that keep browsers from using it otherwise than it is meant:
// those of JSON, which handlers may replace. Pages call [PageHeaders].
func (g *Guard) Headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		JSONHeaders(w)
		if g.o.PublicName != "" && g.o.Secure(r) && strings.EqualFold(hostname(r.Host), g.o.PublicName) {
			w.Header().Set("Strict-Transport-Security", "max-age=15552000")
		}
		next.ServeHTTP(w, r)
	})
}

// JSONHeaders sets the headers of an answer that is no page and that nobody may keep, but its type.
// [Guard.Mux] and [Guard.Headers] have done so before a handler is called.
func JSONHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", nothingShown)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(self)")
	h.Set("Referrer-Policy", "same-origin") // under no-referrer browsers send "Origin: null" with forms of our own
	h.Set("X-Content-Type-Options", "nosniff")
}

// PageHeaders sets the headers of a page of the console: its type, that nobody may keep it, and that it uses scripts,
// styles and sounds of this server alone. It must be called before the page is written. Files that may be kept set
// Cache-Control afterwards.
func PageHeaders(w http.ResponseWriter, r *http.Request) {
	JSONHeaders(w)
	h, policy := w.Header(), pagePolicy
	if plainHost(r.Host) { // 'self' means no sockets in all browsers
		policy += " ws://" + r.Host + " wss://" + r.Host
	}
	h.Set("Content-Security-Policy", policy+pageLimits)
	h.Set("Content-Type", "text/html; charset=utf-8")
}

// plainHost reports whether a host can stand in a policy without being read as more than a host.
func plainHost(host string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"
	return host != "" && len(host) <= 260 && !strings.ContainsFunc(host, func(r rune) bool { return !strings.ContainsRune(letters, r) })
}
