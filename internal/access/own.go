package access

import (
	"context"
	"net/http"
	"strings"

	"xiaozhi/internal/account"
)

// own serves what everybody does with their own account.
type own struct{ *Guard }

// routes let everybody look after their own account.
func (g own) routes() []Route {
	s := g.o.Accounts
	self := account.Need{Role: account.Viewer, Scope: account.Admin}
	fresh := account.Need{Role: account.Viewer, Scope: account.Admin, Fresh: true}
	return []Route{
		{Pattern: "POST /api/v1/me/password", For: People, Need: self, Handler: taking(g.Guard, g.password)},
		g.telling("GET /api/v1/me/sessions", self, func(r *http.Request) (any, error) { return g.sessions(r, PersonOf(r).Name) }),
		g.doing("DELETE /api/v1/me/sessions", fresh, func(ctx context.Context, by account.Person, r *http.Request, _ change) (any, error) {
			return nil, s.EndOtherSessions(ctx, by, g.actor(r))
		}),
		g.telling("GET /api/v1/me/tokens", self, func(r *http.Request) (any, error) { return g.tokens(r, PersonOf(r).Name) }),
		g.doing("POST /api/v1/me/tokens", fresh, g.token),
		g.doing("DELETE /api/v1/me/tokens/{head}", fresh, func(ctx context.Context, by account.Person, r *http.Request, _ change) (any, error) {
			return nil, s.Revoke(ctx, g.actor(r), by.Name, r.PathValue("head"))
		}),
		g.doing("POST /api/v1/me/totp", fresh, func(ctx context.Context, by account.Person, _ *http.Request, _ change) (any, error) {
			return s.Enrol(ctx, by)
		}),
		g.doing("POST /api/v1/me/totp/confirm", fresh, func(ctx context.Context, by account.Person, r *http.Request, c change) (any, error) {
			return nil, s.Confirm(ctx, by, c.Code, g.from(r))
		}),
		{Pattern: "DELETE /api/v1/me/totp", For: People, Need: fresh, Handler: taking(g.Guard, g.factor)},
		{Pattern: "DELETE /api/v1/me", For: People, Need: self, Handler: taking(g.Guard, g.account)},
	}
}

// password sets the password of who asks and shows the one before, which ends all their sessions, and begins a new
// one here.
func (g own) password(w http.ResponseWriter, r *http.Request, c change) error {
	p := PersonOf(r)
	if err := g.o.Accounts.Shows(r.Context(), p, account.Proof{Password: c.Current, Code: c.Second}, g.from(r)); err != nil {
		return err
	}
	if err := g.o.Accounts.SetPassword(r.Context(), g.actor(r), p.Name, c.Password); err != nil {
		return err
	}
	return g.resume(w, r, p)
}

// factor takes the second factor of who asks away, which ends all their sessions, and begins a new one here.
func (g own) factor(w http.ResponseWriter, r *http.Request, _ change) error {
	p := PersonOf(r)
	if err := g.o.Accounts.Unfactor(r.Context(), g.actor(r), p.Name); err != nil {
		return err
	}
	return g.resume(w, r, p)
}

// resume begins a session in the place of that of who asks, which has ended.
func (g own) resume(w http.ResponseWriter, r *http.Request, p account.Person) error {
	secret, err := g.o.Accounts.Begin(r.Context(), p, g.from(r))
	if err != nil {
		return err
	}
	g.setCookie(w, r, secret)
	answer(w, http.StatusOK, struct{}{})
	return nil
}

// account drops the account of who asks and shows the password.
func (g own) account(w http.ResponseWriter, r *http.Request, c change) error {
	p := PersonOf(r)
	if err := g.o.Accounts.Shows(r.Context(), p, account.Proof{Password: c.Current, Code: c.Second}, g.from(r)); err != nil {
		return err
	}
	if err := g.o.Accounts.Delete(r.Context(), g.actor(r), p.Name); err != nil {
		return err
	}
	g.forgetBrowser(w, r)
	return nil
}

// token makes a token for who asks, and shows it once.
func (g own) token(ctx context.Context, by account.Person, r *http.Request, c change) (any, error) {
	scopes, err := account.ParseScopes(strings.Join(c.Scopes, ","))
	if err != nil {
		return nil, err
	}
	n := account.NewToken{Label: c.Label, Scopes: scopes, Streams: c.Streams, Rate: c.Rate}
	switch {
	case c.Days < 0 || c.Days > account.MaxTokenDays:
		return nil, account.ErrTokenBad
	case c.Days > 0:
		n.Ends = g.o.Now().AddDate(0, 0, c.Days)
	}
	secret, err := g.o.Accounts.NewToken(ctx, g.actor(r), by.Name, n)
	return map[string]string{"token": secret}, err
}
