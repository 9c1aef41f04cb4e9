package access

import (
	"context"
	"net/http"

	"xiaozhi/internal/account"
)

// Door lets browsers in: pages for strangers, and logging in and out. Its methods may be called at the same time.
type Door struct{ *Guard }

// OwnPage lets requests of strangers for a page through: by a name of this server, and forms only from its own pages.
func (g Door) OwnPage(next http.Handler, refused func(w http.ResponseWriter, r *http.Request, err error)) http.Handler {
	return g.named(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if alien(r, g.foreign) {
			refused(w, r, account.ErrOrigin)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	}))
}

// alien reports whether a request changes something and does not come from a page of this server.
func alien(r *http.Request, foreign *http.CrossOriginProtection) bool {
	return !harmless(r.Method) && (r.Header.Get("Origin") == "" || foreign.Check(r) != nil)
}

// From tells where a request comes from, behind a trusted proxy too.
func (g Door) From(r *http.Request) account.Origin { return g.from(r) }

// Secure reports whether the browser came by https, behind a trusted proxy too.
func (g Door) Secure(r *http.Request) bool { return g.o.Secure(r) }

// Now returns who asks as they are at this moment: with another role than before, or [account.ErrNoSession].
func (g Door) Now(r *http.Request) (account.Person, error) {
	p, err := g.who(r)
	if err == nil && p.Scopes != nil {
		return account.Person{}, account.ErrNoSession // a token
	}
	return p, err
}

// Enter begins a session of who shows the password, and a second factor where there is one.
func (g Door) Enter(w http.ResponseWriter, r *http.Request, name string, shown account.Proof) error {
	secret, err := g.o.Accounts.Login(r.Context(), name, shown, g.from(r))
	if err != nil {
		return err
	}
	g.setCookie(w, r, secret)
	return nil
}

// Found makes the first owner, who shows the code of the start, and begins a session.
func (g Door) Found(w http.ResponseWriter, r *http.Request, code string, n account.NewUser) error {
	if err := g.o.Accounts.Setup(r.Context(), code, n, g.from(r)); err != nil {
		return err
	}
	return g.Enter(w, r, n.Name, account.Proof{Password: n.Password})
}

// Join makes an account by an invitation, and begins a session.
func (g Door) Join(w http.ResponseWriter, r *http.Request, code string, n account.NewUser) error {
	if err := g.o.Accounts.Accept(r.Context(), code, n, g.from(r)); err != nil {
		return err
	}
	return g.Enter(w, r, n.Name, account.Proof{Password: n.Password})
}

// ShowAgain puts another session in the place of the one whose password is shown again, and returns the request as one of it.
func (g Door) ShowAgain(w http.ResponseWriter, r *http.Request, shown account.Proof) (*http.Request, error) {
	secret, err := g.o.Accounts.Prove(r.Context(), PersonOf(r), shown, g.from(r))
	if err != nil {
		return r, err
	}
	g.setCookie(w, r, secret)
	p, err := g.o.Accounts.Session(r.Context(), secret)
	p.Remote = g.o.Remote(r).String()
	return As(r, p), err
}

// Leave ends the session of who asks, and has the browser forget what it kept.
func (g Door) Leave(w http.ResponseWriter, r *http.Request) error {
	if err := g.o.Accounts.Logout(r.Context(), PersonOf(r), g.from(r)); err != nil {
		return err
	}
	g.setCookie(w, r, "")
	w.Header().Set("Clear-Site-Data", `"cache", "storage"`)
	return nil
}

// As returns a request as one of a person, as a [Guard] does.
func As(r *http.Request, p account.Person) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), personKey{}, p))
}
