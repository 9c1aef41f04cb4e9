package people

import (
	"net/http"
	"strings"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// all is the page of all accounts.
type all struct {
	Once        once
	Users       ui.Rows[store.User]
	Invitations ui.Rows[account.Invitation]
	Roles       []account.Role
	Me          string
	Base        string // of addresses of this server
}

func (p *Page) users(w http.ResponseWriter, r *http.Request, f *ui.Form, o once) {
	a := all{Once: o, Roles: account.Roles(), Me: access.PersonOf(r).Name, Base: base(r)}
	c := ui.Content{Title: p.site.Say(r, "people/users"), Data: &a, Form: f}
	if err := p.fill(r, &a); err != nil {
		p.site.Failed(w, r, "users", c, err)
		return
	}
	p.site.Show(w, r, "users", c)
}

// fill takes the accounts and the invitations that an address asks for.
func (p *Page) fill(r *http.Request, a *all) error {
	users, err := p.accounts.Users(r.Context())
	role := func(role account.Role) string { return string(role) + " " + p.site.Say(r, "frame/role-"+string(role)) }
	a.Users, err = ui.List[store.User]{
		Path: path,
		Key:  func(u store.User) string { return u.Name },
		Text: func(u store.User) string { return u.Name + " " + u.Shown + " " + role(u.Role) },
	}.Page(r, users, err)
	if err != nil {
		return err
	}
	open, err := p.accounts.Invitations(r.Context())
	a.Invitations, err = ui.List[account.Invitation]{
		Path: path, Name: "invitations",
		Key:  func(i account.Invitation) string { return access.Before(i.Ends, i.ID) }, // rising, as all are of these years
		Text: func(i account.Invitation) string { return i.By + " " + role(i.Role) },
	}.Page(r, open, err)
	return err
}

// base is the address of this server as the browser knows it.
func base(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host
}

// changeUsers does what an owner has asked for with an account or an invitation.
func (p *Page) changeUsers(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	ctx, by, name, shown := r.Context(), p.actor(r), f.Get("name"), once{}
	var err error
	done := ""
	switch f.Get("do") {
	case "invite":
		shown.Invitation, err = p.accounts.Invite(ctx, by, access.PersonOf(r).ID, account.Role(f.Get("role")))
	case "withdraw":
		err, done = p.accounts.Withdraw(ctx, by, f.Get("id")), "people/withdrawn"
	case "role":
		err, done = p.accounts.SetRole(ctx, by, name, account.Role(f.Get("role"))), "people/role-set"
	case "disable":
		err, done = p.accounts.Disable(ctx, by, name, true), "people/disabled"
	case "enable":
		err, done = p.accounts.Disable(ctx, by, name, false), "people/enabled"
	case "end-sessions":
		err, done = p.accounts.EndSessions(ctx, by, name), "people/sessions-ended"
	case "unfactor":
		err, done = p.accounts.Unfactor(ctx, by, name), "people/second-off"
	case "delete":
		is, wrong := account.CheckName(name) // as it is kept, in whatever letters it was typed
		if err, done = account.ErrOwnAccount, "people/deleted"; wrong != nil || is != access.PersonOf(r).Name {
			err = p.accounts.Delete(ctx, by, name)
		}
	default:
		p.site.NotFound(w, r)
		return
	}
	p.after(w, r, f, err, done, path, func() { p.users(w, r, f, shown) })
}

// book is the page of what was done.
type book struct {
	Acts  []store.Act
	Older string // path
}

func (p *Page) audit(w http.ResponseWriter, r *http.Request) {
	page, err := access.PageOf(r)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	acts, err := p.accounts.Audit(r.Context(), page)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	b := book{Acts: acts}
	if n := len(acts); n == page.Limit {
		b.Older = ui.Prefix + "log?before=" + access.Before(acts[n-1].At, acts[n-1].ID)
	}
	p.site.Show(w, r, "log", ui.Content{Title: p.site.Say(r, "people/log"), Data: b})
}

// tail is the page of the server's log.
type tail struct {
	Lines         []string // the newest first
	Level, Search string
}

const maxLines = 500 // on a page

// lines returns those of a level, or a worse one, that hold what is searched for.
func (p *Page) lines(level, search string) tail {
	t := tail{Level: level, Search: search}
	lines := strings.Split(strings.TrimRight(p.log(), "\n"), "\n")
	for i := len(lines) - 1; i >= 0 && len(t.Lines) < maxLines; i-- {
		line := lines[i]
		if line != "" && leveled(line, t.Level) && strings.Contains(strings.ToLower(line), strings.ToLower(t.Search)) {
			t.Lines = append(t.Lines, line)
		}
	}
	return t
}

// leveled reports whether a line is of a level, or a worse one.
func leveled(line, least string) bool {
	switch least {
	case "warn":
		return strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
	case "error":
		return strings.Contains(line, "level=ERROR")
	}
	return true
}

func (p *Page) server(w http.ResponseWriter, r *http.Request) {
	level, err := access.Choice(r, "level", "warn", "error")
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	t := p.lines(level, r.URL.Query().Get("q"))
	p.site.Show(w, r, "log-server", ui.Content{Title: p.site.Say(r, "people/server-log"), Data: t, Form: ui.Filled("q", t.Search, "level", t.Level)})
}
