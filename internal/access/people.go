package access

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// change is the body of a request that changes something of an account.
type change struct {
	Name     string `json:"name"`
	Role     string `json:"role"`
	Password string `json:"password"`
	Current  string `json:"current"` // password, where it is changed by who has it
	Second   string `json:"second"`  // code beside it
	Code     string `json:"code"`
	Device   string `json:"device"`

	Label   string   `json:"label"` // of a token
	Scopes  []string `json:"scopes"`
	Streams []string `json:"streams"`
	Rate    int      `json:"rate"`
	Days    int      `json:"days"`
}

// doing carries out a request of a person and returns the answer; nil: an empty one.
type doing func(ctx context.Context, by account.Person, r *http.Request, c change) (answer any, err error)

// peopleRoutes let an owner do with accounts what the command xiaozhi user does.
func (g *Guard) peopleRoutes() []Route {
	s := g.o.Accounts
	all := account.Need{Role: account.Owner, Scope: account.Admin}
	fresh := account.Need{Role: account.Owner, Scope: account.Admin, Fresh: true}
	do := func(pattern string, f func(ctx context.Context, by account.Actor, name string, c change) error) Route {
		return g.doing(pattern, fresh, func(ctx context.Context, by account.Person, r *http.Request, c change) (any, error) {
			return nil, f(ctx, g.actor(r), r.PathValue("name"), c)
		})
	}
	return []Route{
		g.telling("GET /api/v1/users", all, g.users),
		do("POST /api/v1/users", func(ctx context.Context, by account.Actor, _ string, c change) error {
			if c.Password == "" {
				return account.ErrPasswordShort
			}
			return s.Add(ctx, by, account.NewUser{Name: c.Name, Role: account.Role(c.Role), Password: c.Password})
		}),
		g.doing("DELETE /api/v1/users/{name}", fresh, g.deleteUser),
		do("DELETE /api/v1/users/{name}/totp", func(ctx context.Context, by account.Actor, name string, _ change) error {
			return s.Unfactor(ctx, by, name)
		}),
		do("POST /api/v1/users/{name}/role", func(ctx context.Context, by account.Actor, name string, c change) error {
			return s.SetRole(ctx, by, name, account.Role(c.Role))
		}),
		do("POST /api/v1/users/{name}/password", func(ctx context.Context, by account.Actor, name string, c change) error {
			return s.SetPassword(ctx, by, name, c.Password)
		}),
		do("POST /api/v1/users/{name}/disable", func(ctx context.Context, by account.Actor, name string, _ change) error {
			return s.Disable(ctx, by, name, true)
		}),
		do("POST /api/v1/users/{name}/enable", func(ctx context.Context, by account.Actor, name string, _ change) error {
			return s.Disable(ctx, by, name, false)
		}),
		g.telling("GET /api/v1/users/{name}/sessions", all, func(r *http.Request) (any, error) { return g.sessions(r, r.PathValue("name")) }),
		do("DELETE /api/v1/users/{name}/sessions", func(ctx context.Context, by account.Actor, name string, _ change) error {
			return s.EndSessions(ctx, by, name)
		}),
		g.telling("GET /api/v1/users/{name}/tokens", all, func(r *http.Request) (any, error) { return g.tokens(r, r.PathValue("name")) }),
		g.doing("DELETE /api/v1/users/{name}/tokens/{head}", fresh, func(ctx context.Context, _ account.Person, r *http.Request, _ change) (any, error) {
			return nil, s.Revoke(ctx, g.actor(r), r.PathValue("name"), r.PathValue("head"))
		}),
		g.telling("GET /api/v1/users/{name}/devices", all, func(r *http.Request) (any, error) {
			ids, err := s.Devices(r.Context(), r.PathValue("name"))
			return map[string][]string{"devices": append([]string{}, ids...)}, err
		}),
		do("POST /api/v1/users/{name}/devices", func(ctx context.Context, by account.Actor, name string, c change) error {
			return s.Give(ctx, by, g.o.Device(c.Device), name)
		}),
		g.doing("DELETE /api/v1/users/{name}/devices/{id}", fresh, func(ctx context.Context, _ account.Person, r *http.Request, _ change) (any, error) {
			return nil, s.Take(ctx, g.actor(r), g.o.Device(r.PathValue("id")), r.PathValue("name"))
		}),
		g.telling("GET /api/v1/invites", all, g.invitations),
		g.doing("POST /api/v1/invites", fresh, func(ctx context.Context, by account.Person, r *http.Request, c change) (any, error) {
			code, err := s.Invite(ctx, g.actor(r), by.ID, account.Role(c.Role))
			return map[string]string{"code": code, "id": account.InvitationID(code)}, err
		}),
		g.doing("DELETE /api/v1/invites/{id}", fresh, func(ctx context.Context, _ account.Person, r *http.Request, _ change) (any, error) {
			return nil, s.Withdraw(ctx, g.actor(r), r.PathValue("id"))
		}),
		g.telling("GET /api/v1/audit", all, g.audit),
	}
}

// telling is a route that only tells something.
func (g *Guard) telling(pattern string, need account.Need, f func(r *http.Request) (any, error)) Route {
	return Route{Pattern: pattern, For: People, Need: need, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := f(r)
		if err != nil {
			g.refuse(w, r, err)
			return
		}
		answer(w, http.StatusOK, body)
	})}
}

// doing is a route that does something.
func (g *Guard) doing(pattern string, need account.Need, f doing) Route {
	return Route{Pattern: pattern, For: People, Need: need, Handler: taking(g, func(w http.ResponseWriter, r *http.Request, c change) error {
		body, err := f(r.Context(), PersonOf(r), r, c)
		if err != nil {
			return err
		}
		if body == nil {
			body = struct{}{}
		}
		answer(w, http.StatusOK, body)
		return nil
	})}
}

// actor names the person of a request for the audit.
func (g *Guard) actor(r *http.Request) account.Actor {
	return PersonOf(r).Actor(g.o.Remote(r).String())
}

// users lists the accounts.
func (g *Guard) users(r *http.Request) (any, error) {
	all, err := g.o.Accounts.Users(r.Context())
	list := []person{}
	for _, u := range all {
		list = append(list, person{Name: u.Name, Shown: u.Shown, Role: string(u.Role), Second: u.TOTP != "", Disabled: when(u.DisabledAt)})
	}
	return map[string]any{"users": list}, err
}

// deleteUser drops the account of somebody else. That of who asks wants the password.
func (g *Guard) deleteUser(ctx context.Context, by account.Person, r *http.Request, _ change) (any, error) {
	name := r.PathValue("name")
	if is, err := account.CheckName(name); err == nil && is == by.Name {
		return nil, account.ErrOwnAccount
	}
	return nil, g.o.Accounts.Delete(ctx, g.actor(r), name)
}

// invitation is one that nobody has followed yet, for programs.
type invitation struct {
	ID   string    `json:"id"`
	Role string    `json:"role"`
	By   string    `json:"by,omitempty"`
	Ends time.Time `json:"ends"`
}

func (g *Guard) invitations(r *http.Request) (any, error) {
	all, err := g.o.Accounts.Invitations(r.Context())
	list := []invitation{}
	for _, i := range all {
		list = append(list, invitation{i.ID, string(i.Role), i.By, i.Ends})
	}
	return map[string]any{"invites": list}, err
}

// session is a browser that is logged in, for programs.
type session struct {
	Since   time.Time `json:"since"`
	Seen    time.Time `json:"seen"`
	Remote  string    `json:"remote"`
	Browser string    `json:"browser"`
	This    bool      `json:"this,omitempty"`
}

func (g *Guard) sessions(r *http.Request, name string) (any, error) {
	all, err := g.o.Accounts.Sessions(r.Context(), name)
	list := []session{}
	for _, s := range all {
		list = append(list, session{s.CreatedAt, s.SeenAt, s.Remote, s.Browser, PersonOf(r).Has(s)})
	}
	return map[string]any{"sessions": list}, err
}

// token is the token of a program, as it is shown after it was made.
type token struct {
	Head    string     `json:"head"`
	Label   string     `json:"label"`
	Scopes  []string   `json:"scopes"`
	Streams []string   `json:"streams,omitempty"`
	Rate    int        `json:"rate,omitempty"`
	Since   time.Time  `json:"since"`
	Used    *time.Time `json:"used,omitempty"`
	Ends    *time.Time `json:"ends,omitempty"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

func (g *Guard) tokens(r *http.Request, name string) (any, error) {
	all, err := g.o.Accounts.Tokens(r.Context(), name)
	list := []token{}
	for _, t := range all {
		list = append(list, token{
			t.Head, t.Name, strings.Fields(t.Scopes), strings.Fields(t.Streams), t.Rate, t.CreatedAt, when(t.UsedAt), when(t.EndsAt), when(t.RevokedAt),
		})
	}
	return map[string]any{"tokens": list}, err
}

// when is a time for programs; nil: never.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// act is a line of the audit.
type act struct {
	At     time.Time `json:"at"`
	Who    string    `json:"who"`
	Via    string    `json:"via"`
	Remote string    `json:"remote,omitempty"`
	Act    string    `json:"act"`
	Object string    `json:"object,omitempty"`
	Detail string    `json:"detail,omitempty"`
	OK     bool      `json:"ok"`
}

// maxLimit bounds a page of the audit, in lines.
const maxLimit = 200

// audit tells a page of the audit, the newest first. "before" of an answer asks for the next page.
func (g *Guard) audit(r *http.Request) (any, error) {
	page, err := PageOf(r)
	if err != nil {
		return nil, err
	}
	all, err := g.o.Accounts.Audit(r.Context(), page)
	out := struct {
		Acts   []act  `json:"acts"`
		Before string `json:"before,omitempty"`
	}{Acts: []act{}}
	for _, a := range all {
		out.Acts = append(out.Acts, act{a.At, a.Who, a.Via, a.Remote, a.Act, a.Object, a.Detail, a.OK})
	}
	if n := len(all); n == page.Limit {
		out.Before = Before(all[n-1].At, all[n-1].ID)
	}
	return out, err
}

// PageOf reads which page of a list is asked for, by "before" and "limit" of the query: 50 rows if it does not say, 200 at
// most.
func PageOf(r *http.Request) (store.Page, error) {
	q := r.URL.Query()
	return pageOf(q.Get("before"), q.Get("limit"))
}

// Before returns the "before" by which the page after a row is asked for, whose time and id are given.
func Before(at time.Time, id string) string { return strconv.FormatInt(at.UnixMilli(), 10) + "." + id }

// pageOf reads which page is asked for.
func pageOf(before, limit string) (p store.Page, err error) {
	p.Limit = 50
	if limit != "" {
		if p.Limit, err = strconv.Atoi(limit); err != nil || p.Limit < 1 || p.Limit > maxLimit {
			return p, account.ErrPageBad
		}
	}
	if before != "" {
		p.Before, err = ParseBefore(before)
	}
	return p, err
}

// ParseBefore reads what [Before] has written. The error is [account.ErrPageBad].
func ParseBefore(before string) (c store.Cursor, err error) {
	at, id, _ := strings.Cut(before, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || id == "" || len(id) > 64 {
		return c, account.ErrPageBad
	}
	return store.Cursor{At: time.UnixMilli(ms), ID: id}, nil
}
