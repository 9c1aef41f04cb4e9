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
	"strings"
)

// Token lets its bearer in.
type Token struct {
	Name     string // for the log
	Token    string // never empty, never logged
	ReadOnly bool   // it may look, but not call
}

// LogValue keeps the token out of logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Name) }

// Access decides who may use what is offered outward (design.md section 10,
// mcp.md 7.7): with no token only this machine, with one only its bearers. Its
// methods may be called at the same time.
type Access struct {
	Tokens []Token
	Log    *slog.Logger // nil: slog.DiscardHandler
}

// denial is why a request is not let in.
type denial struct {
	status int
	zh, en string
}

// Guard lets those in who may, and answers the others.
func (a Access) Guard(next http.Handler) http.Handler {
	log := a.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, denied := a.admit(r)
		if denied == nil {
			next.ServeHTTP(w, r)
			return
		}
		log.Warn("request refused", "path", r.URL.Path, "remote", r.RemoteAddr, "status", denied.status, "why", denied.en, "token", name)
		if denied.status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="xiaozhi"`)
		}
		fail(w, denied.status, denied.zh, denied.en)
	})
}

// admit says who the bearer is, or why the request is refused.
func (a Access) admit(r *http.Request) (string, *denial) {
	if len(a.Tokens) == 0 {
		if !loopback(r) {
			return "", &denial{
				http.StatusForbidden, "没有配置 mcp.tokens，只允许本机访问",
				"only this machine is let in, because mcp.tokens is not configured",
			}
		}
		return "", nil
	}
	t, ok := a.bearer(r)
	switch {
	case !ok:
		return "", &denial{http.StatusUnauthorized, "需要 mcp.tokens 里的令牌", "a token of mcp.tokens is needed: Authorization: Bearer …"}
	case t.ReadOnly && r.Method != http.MethodGet && r.Method != http.MethodHead:
		return t.Name, &denial{http.StatusForbidden, "这个令牌是只读的", "this token is read-only"}
	}
	return t.Name, nil
}

// bearer finds the token that the request shows, in a time that does not tell
// how much of it is right.
func (a Access) bearer(r *http.Request) (Token, bool) {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Token{}, false
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(shown)))
	var found Token
	ok := false
	for _, t := range a.Tokens {
		want := sha256.Sum256([]byte(t.Token))
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && t.Token != "" {
			found, ok = t, true
		}
	}
	return found, ok
}

// loopback reports whether a request comes from this machine and was meant for
// it: neither through a proxy, nor from a web page of somebody else, whose name
// may well lead here.
func loopback(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !isLoopback(host) {
		return false
	}
	if !isLoopback(hostOf(r.Host)) {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && isLoopback(u.Hostname())
}

// hostOf is a Host header without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

func isLoopback(host string) bool {
	if host == "localhost" {
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
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the other end may be gone
}
