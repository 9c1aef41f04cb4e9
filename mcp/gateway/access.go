package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/internal/lockout"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/gateway/catalog"
)

// Access decides on the use of what is offered outward. It is for the bearers of
// tokens and for the owner ([Gateway.SetOwner]), wherever they are: where a request
// seems to come from says nothing behind a proxy.
type Access struct {
	Tokens []catalog.Token
	// Account returns the token of an account that a program shows, with Account set; nil if
	// nobody has it. Its error is one of the disk. nil: there are no accounts.
	Account func(ctx context.Context, shown string) (*catalog.Token, error)
	Hosts   []string // names that bearers may ask for, beside this machine's own; a proxy in front has one
	Origins []string // origins of web pages that may ask; "*": all
}

// denial is the reason for which a request is refused.
type denial struct {
	status int
	code   string // of REST
	text   string // id of a message
}

// guard applies an [Access]. Its methods may be called at the same time.
type guard struct {
	Access
	owner string // the admin token; "": there is none
	rates *rates
	lines *lockout.Lines // about who is not let in
	log   *slog.Logger
}

func newGuard(a Access, log *slog.Logger) *guard {
	return &guard{Access: a, rates: newRates(), lines: lockout.NewLines(), log: log}
}

// before returns next behind access control: it finds the caller in the context of
// the request. refuse answers the others, with a message by its id.
func (g *guard) before(next http.Handler, refuse func(w http.ResponseWriter, status int, id string, args ...any)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, denied := g.admit(r)
		look := r.Method == http.MethodGet || r.Method == http.MethodHead
		if denied == nil && (look && !c.Reads() || !look && c.ReadOnly()) {
			denied = &denial{http.StatusForbidden, codeForbidden, "gateway/read-only"}
		}
		if denied == nil && !isJSON(r) {
			denied = &denial{http.StatusUnsupportedMediaType, codeBadRequest, "gateway/body-no-json"}
		}
		if denied != nil {
			g.note(w, r, c, denied)
			refuse(w, denied.status, denied.text)
			return
		}
		c.Via = "api"
		c = c.Until(r.Context())
		next.ServeHTTP(w, r.WithContext(catalog.WithCaller(r.Context(), c)))
	})
}

// note logs a request that is not let in, and sets the headers of its answer.
func (g *guard) note(w http.ResponseWriter, r *http.Request, c catalog.Caller, d *denial) {
	g.lines.Log(g.log.Warn, "request refused", "path", catalog.Clip(r.URL.Path), "remote", r.RemoteAddr, "status", d.status,
		"why", message.In(text.English, d.text), "token", c.Name())
	switch d.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="xiaozhi"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
}

// admit returns the caller of a request, or the reason for which it is refused.
func (g *guard) admit(r *http.Request) (catalog.Caller, *denial) {
	c := catalog.CallerOf(r)
	if !g.hostFits(r) {
		return c, &denial{http.StatusForbidden, codeForbidden, "gateway/host-refused"}
	}
	if !g.originFits(r) || g.crossSite(r) {
		return c, &denial{http.StatusForbidden, codeForbidden, "gateway/origin-refused"}
	}
	t, owner, ok, err := g.bearer(r)
	if err != nil {
		g.log.Error("tokens of accounts cannot be read", "err", err)
		return c, &denial{http.StatusServiceUnavailable, codeUnread, "gateway/accounts-unread"}
	}
	if !g.rates.guesses.Listens(r.RemoteAddr, t.Name) {
		return c, &denial{http.StatusTooManyRequests, codeRate, "gateway/wrong-tokens"}
	}
	if !ok {
		if r.Header.Get("Authorization") != "" || r.URL.Query().Has("token") {
			g.rates.guesses.Wrong(r.RemoteAddr)
		}
		return c, &denial{http.StatusUnauthorized, codeUnauthorized, "gateway/token-needed"}
	}
	if owner {
		c.Owner = true
		return c, nil
	}
	c.Token = &t
	if !g.within(c) {
		return c, &denial{http.StatusTooManyRequests, codeRate, "gateway/too-many-requests"}
	}
	return c, nil
}

// within counts one request of a caller and reports whether it is within the rate
// of its token.
func (g *guard) within(c catalog.Caller) bool {
	return c.Owner || c.Token != nil && g.rates.allow(c)
}

// ownerName is what the admin token is called where tokens have names.
const ownerName = "admin token"

// bearer returns the token that the request shows, in a time that does not tell how
// much of it is right. The owner's has a name only.
func (g *guard) bearer(r *http.Request) (found catalog.Token, owner, ok bool, err error) {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
	case scheme == "" && (path == pathSocket || path == pathConnect): // browsers cannot send headers there
		shown = r.URL.Query().Get("token")
	default:
		return catalog.Token{}, false, false, nil
	}
	shown = strings.TrimSpace(shown)
	sum := sha256.Sum256([]byte(shown))
	shows := func(token string) bool {
		want := sha256.Sum256([]byte(token))
		return subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && token != ""
	}
	for _, t := range g.Tokens {
		if shows(t.Token) {
			found, ok = t, true
		}
	}
	switch {
	case shows(g.owner):
		return catalog.Token{Name: ownerName}, true, true, nil
	case !ok && g.Account != nil:
		of, err := g.Account(r.Context(), shown)
		if of == nil || err != nil {
			return catalog.Token{}, false, false, err
		}
		return *of, false, true, nil
	}
	return found, false, ok, nil
}

// hostFits reports whether Host is a name to be asked for by. It refuses names that
// lead a browser here unnoticed (DNS rebinding): over loopback all but this machine's
// own and Hosts, elsewhere all but Hosts, if there are any, and addresses.
func (g *guard) hostFits(r *http.Request) bool {
	host := hostOf(r.Host)
	known := func(name string) bool { return strings.EqualFold(name, r.Host) || strings.EqualFold(name, host) }
	if isLoopback(host) || slices.ContainsFunc(g.Hosts, known) {
		return true
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if ip, _, err := net.SplitHostPort(local.String()); err == nil && isLoopback(ip) {
			return false
		}
	}
	if len(g.Hosts) == 0 {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// originFits reports whether a web page may ask: it is of the same host, of this
// machine, or one of Origins.
func (g *guard) originFits(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || g.knownOrigin(origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (strings.EqualFold(u.Host, r.Host) || isLoopback(u.Hostname()))
}

// crossSite reports whether a browser says that a page of another site asks, which may
// not tell its origin: by a link, a form or a picture. Origins may.
func (g *guard) crossSite(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") == "cross-site" && !g.knownOrigin(r.Header.Get("Origin"))
}

// isJSON reports whether a request says that its body is JSON, if it has one. A page of
// another site can send other types, or none, without asking for leave.
func isJSON(r *http.Request) bool {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return true
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

func (g *guard) knownOrigin(origin string) bool {
	return slices.Contains(g.Origins, "*") || slices.ContainsFunc(g.Origins, func(o string) bool { return strings.EqualFold(o, origin) })
}

func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
