package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Token lets its bearer in.
type Token struct {
	Name     string   // for the log
	Token    string   // never empty, never logged
	ReadOnly bool     // it may look, and call only tools of this server that change nothing
	Streams  []string // patterns (path.Match) of the streams it may see; empty: all. Named devices: no others
	Rate     int      // requests in a second, over some seconds; 0: no limit
}

// LogValue keeps the token out of logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Name) }

// Access decides who may use what is offered outward (design.md section 10,
// mcp.md 7.7): with no token only this machine, with one only its bearers. Its
// methods may be called at the same time.
type Access struct {
	Tokens  []Token
	Hosts   []string     // names that bearers may ask for, beside this machine's own; a proxy in front has one
	Origins []string     // origins of web pages that may ask; "*": all
	Log     *slog.Logger // nil: slog.DiscardHandler
}

// denial is why a request is not let in.
type denial struct {
	status int
	code   string // of REST
	zh, en string
}

// guard is an Access at work.
type guard struct {
	Access
	rates   *rates
	refused func(w http.ResponseWriter, r *http.Request, d *denial) // answers
}

// before lets those in who may, and answers the others. The handler finds the
// caller in the request's context.
func (g *guard) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, denied := g.admit(r)
		if denied == nil && c.readOnly() && r.Method != http.MethodGet && r.Method != http.MethodHead {
			denied = &denial{http.StatusForbidden, codeForbidden, "这个令牌是只读的", "this token is read-only"}
		}
		if denied != nil {
			g.refuse(w, r, c, denied)
			return
		}
		c.via = "api"
		c = c.until(r.Context())
		next.ServeHTTP(w, r.WithContext(withCaller(r.Context(), c)))
	})
}

func (a Access) guard(refused func(http.ResponseWriter, *http.Request, *denial)) *guard {
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	return &guard{Access: a, rates: newRates(), refused: refused}
}

// refuse answers and logs a request that is not let in.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, c caller, d *denial) {
	g.Log.Warn("request refused", "path", clip(r.URL.Path), "remote", r.RemoteAddr, "status", d.status, "why", d.en, "token", c.name())
	switch d.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="xiaozhi"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	g.refused(w, r, d)
}

// admit says who sends a request, or why it is refused.
func (g *guard) admit(r *http.Request) (caller, *denial) {
	c := caller{remote: r.RemoteAddr, language: languageOf(r)}
	if len(g.Tokens) == 0 {
		if !g.ownMachine(r) {
			return c, &denial{
				http.StatusForbidden, codeForbidden, "没有配置 mcp.tokens，只允许本机访问",
				"only this machine is let in, because mcp.tokens is not configured",
			}
		}
		return c, nil
	}
	if !g.hostFits(r) {
		return c, &denial{http.StatusForbidden, codeForbidden, "不接受这个 Host，请看 mcp.hosts", "this Host is not served, see mcp.hosts"}
	}
	if !g.originFits(r) {
		return c, &denial{http.StatusForbidden, codeForbidden, "不接受这个网页来源，请看 mcp.origins", "this Origin is not served, see mcp.origins"}
	}
	t, ok := g.bearer(r)
	if !g.rates.listens(r.RemoteAddr, t.Name) {
		return c, &denial{http.StatusTooManyRequests, codeRate, "错误的令牌太多，请稍后再试", "too many wrong tokens, try again later"}
	}
	if !ok {
		if r.Header.Get("Authorization") != "" || r.URL.Query().Has("token") {
			g.rates.guessed(r.RemoteAddr)
		}
		return c, &denial{http.StatusUnauthorized, codeUnauthorized, "需要 mcp.tokens 里的令牌", "a token of mcp.tokens is needed: Authorization: Bearer …"}
	}
	c.token = &t
	if !g.within(c) {
		return c, &denial{http.StatusTooManyRequests, codeRate, "请求太频繁", "too many requests"}
	}
	return c, nil
}

// within counts one request of a caller and reports whether it is within the rate
// of its token.
func (g *guard) within(c caller) bool { return c.token == nil || g.rates.allow(*c.token) }

// bearer finds the token that the request shows, in a time that does not tell
// how much of it is right.
func (g *guard) bearer(r *http.Request) (Token, bool) {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
	case scheme == "" && takesQueryToken(r.URL.Path):
		shown = r.URL.Query().Get("token")
	default:
		return Token{}, false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(shown)))
	var found Token
	ok := false
	for _, t := range g.Tokens {
		want := sha256.Sum256([]byte(t.Token))
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && t.Token != "" {
			found, ok = t, true
		}
	}
	return found, ok
}

// takesQueryToken reports whether a token may stand in the address: where
// browsers cannot send headers.
func takesQueryToken(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return path == pathSocket || path == pathConnect
}

// ownMachine reports whether a request comes from this machine and was meant for
// it: neither through a proxy, which may leave no other sign than the name that it
// is asked for by, nor from a web page of somebody else, whose name may lead here.
func (g *guard) ownMachine(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" || name == "X-Real-Ip" || name == "Via" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !isLoopback(host) {
		return false
	}
	if !isLoopback(hostOf(r.Host)) { // also one of Hosts: whoever is asked for by it stands behind a proxy
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" || g.knownOrigin(origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && isLoopback(u.Hostname())
}

// hostFits refuses names that lead a browser here without anybody's knowing
// (DNS rebinding): over loopback only this machine's own and Hosts, elsewhere
// Hosts, if there are any, and addresses.
func (g *guard) hostFits(r *http.Request) bool {
	host := hostOf(r.Host)
	if isLoopback(host) || g.knownHost(r.Host) {
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

func (g *guard) knownHost(host string) bool {
	return slices.ContainsFunc(g.Hosts, func(known string) bool {
		return strings.EqualFold(known, host) || strings.EqualFold(known, hostOf(host))
	})
}

// originFits reports whether a web page may ask: one of the same host, of this
// machine, or of Origins.
func (g *guard) originFits(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || g.knownOrigin(origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (strings.EqualFold(u.Host, r.Host) || isLoopback(u.Hostname()))
}

func (g *guard) knownOrigin(origin string) bool {
	return slices.Contains(g.Origins, "*") || slices.ContainsFunc(g.Origins, func(o string) bool { return strings.EqualFold(o, origin) })
}

// hostOf is a Host header without its port.
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

// problem is the body of an answer that is an error, in both languages.
type problem struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// fail answers with an error.
func fail(w http.ResponseWriter, status int, zh, en string) {
	reply(w, status, problem{en, zh + " / " + en})
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	replyRaw(w, status, data)
}

// replyRaw answers with JSON that is written already, in time: a client that does
// not read its answer is hung up on.
func replyRaw(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the other end may be gone
	_ = rc.Flush()                     // while there is a deadline
	_ = rc.SetWriteDeadline(time.Time{})
}
