package access

import (
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"

	"xiaozhi/internal/account"
	"xiaozhi/internal/lockout"
)

// who finds out who asks: by a token, else by a cookie. A page of somebody else can send the cookie along, so what is not
// a harmless question must come from a page of this server.
func (g *Guard) who(r *http.Request) (account.Person, error) {
	p, err := known(g, r)
	if err == nil {
		p.Remote = g.o.Remote(r).String()
	}
	return p, err
}

func known(g *Guard, r *http.Request) (account.Person, error) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if bearer {
		return g.program(r, token)
	}
	if g.o.Accounts == nil {
		return account.Person{}, account.ErrNoSession
	}
	cookie, err := r.Cookie(cookieName(g.o.Secure(r)))
	if err != nil {
		return account.Person{}, account.ErrNoSession
	}
	if alien(r, g.foreign) {
		return account.Person{}, account.ErrOrigin
	}
	return g.o.Accounts.Session(r.Context(), cookie.Value)
}

// Session returns whose session a request shows by its cookie. The page that asks may be anybody's: whoever lets something
// be done by it must see more than that.
func Session(g *Guard, r *http.Request) (account.Person, error) {
	if g.o.Accounts == nil {
		return account.Person{}, account.ErrNoSession
	}
	cookie, err := r.Cookie(cookieName(g.o.Secure(r)))
	if err != nil {
		return account.Person{}, account.ErrNoSession
	}
	return g.o.Accounts.Session(r.Context(), cookie.Value)
}

// program finds out who is acted for by a token. From an address with many wrong ones only those are looked at that were
// right there before.
func (g *Guard) program(r *http.Request, token string) (p account.Person, err error) {
	switch {
	case g.admin != "" && subtle.ConstantTimeCompare([]byte(token), []byte(g.admin)) == 1:
		p = account.Person{Name: account.AdminName, Role: account.Owner, Scopes: []account.Scope{account.Admin}}
	case g.o.Accounts == nil:
		err = account.ErrNoToken
	default:
		p, err = g.o.Accounts.Token(r.Context(), token)
	}
	remote, right := net.JoinHostPort(g.o.Remote(r).String(), "0"), ""
	switch {
	case err == nil:
		right = p.Name
	case !errors.Is(err, account.ErrNoToken):
		return p, err
	}
	if !g.guesses.Listens(remote, right) {
		return account.Person{}, &account.TooOftenError{Wait: lockout.Window}
	}
	if err != nil {
		g.guesses.Wrong(remote)
	}
	return p, err
}

func harmless(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// cookieName is that of the session's cookie. One of a secure connection is for this host alone.
func cookieName(secure bool) string {
	if secure {
		return "__Host-xiaozhi"
	}
	return "xiaozhi"
}

// setCookie gives a browser the secret of a session; "" takes it away.
func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request, secret string) {
	secure := g.o.Secure(r)
	c := &http.Cookie{Name: cookieName(secure), Value: secret, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode, MaxAge: account.SessionSeconds}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}
