package people

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	a := all{Once: o, Roles: account.Roles(), Me: access.PersonOf(r).Name, Base: p.base(r)}
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
	if a.Users.Many = true; err != nil {
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
func (p *Page) base(r *http.Request) string {
	scheme := "http://"
	if p.door.Secure(r) {
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
	Acts    []store.Act
	Search  string
	Older   string // path
	Further bool   // nothing was found so far
}

func (p *Page) audit(w http.ResponseWriter, r *http.Request) {
	b := book{Search: strings.TrimSpace(r.URL.Query().Get("q"))}
	c := ui.Content{Title: p.site.Say(r, "people/log"), Data: &b}
	if err := p.acts(r, &b); err != nil {
		p.site.Failed(w, r, "log", c, err)
		return
	}
	p.site.Show(w, r, "log", c)
}

// acts takes those that an address asks for.
func (p *Page) acts(r *http.Request, b *book) (err error) {
	var page store.Page
	if before := r.URL.Query().Get("before"); before != "" {
		if page.Before, err = access.ParseBefore(before); err != nil {
			return err
		}
	}
	var end *store.Act
	b.Acts, end, err = ui.Scan(b.Search, func(after *store.Act, n int) ([]store.Act, error) {
		if page.Limit = n; after != nil {
			page.Before = store.Cursor{At: after.At, ID: after.ID}
		}
		return p.accounts.Audit(r.Context(), page)
	}, p.searched(r))
	if end != nil {
		b.Older = ui.Prefix + "log?" + url.Values{"q": {b.Search}, "before": {access.Before(end.At, end.ID)}}.Encode()
		b.Further = len(b.Acts) == 0
	}
	return err
}

// searched returns what an act is searched for.
func (p *Page) searched(r *http.Request) func(store.Act) string {
	outcome := map[bool]string{true: p.site.Say(r, "people/did"), false: p.site.Say(r, "people/refused")}
	return func(a store.Act) string {
		return strings.Join([]string{a.Who, a.Act, p.site.Say(r, words+"act-"+a.Act), a.Object, a.Detail, a.Remote, a.Via, outcome[a.OK]}, " ")
	}
}

// tail is the page of the server's log.
type tail struct {
	ui.Rows[line] // the newest first

	Level string
}

// line is one of the server's log.
type line struct {
	Text string
	key  string
}

const maxLines = 500 // on a page

// lines returns those of a level, or a worse one, that an address asks for.
func (p *Page) lines(r *http.Request, level string) (t tail, err error) {
	var all []line
	var last time.Time
	same := 0 // lines of the same time as the last one
	for text := range strings.Lines(p.log()) {
		if text = strings.TrimRight(text, "\n"); text == "" {
			continue
		}
		stamp, _, _ := strings.Cut(strings.TrimPrefix(text, "time="), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			at = last
		}
		if same++; !at.Equal(last) {
			last, same = at, 0
		}
		if leveled(text, level) {
			all = append(all, line{text, access.Before(at, fmt.Sprintf("%05d", same))})
		}
	}
	t = tail{Level: level}
	t.Rows, err = ui.List[line]{
		Path: ui.Prefix + "log/server", Newest: true, Size: maxLines,
		Key: func(l line) string { return l.key }, Text: func(l line) string { return l.Text },
	}.Page(r, all, nil)
	return t, err
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
	level, wrong := access.Choice(r, "level", "warn", "error")
	t, err := p.lines(r, level)
	c := ui.Content{Title: p.site.Say(r, "people/server-log"), Data: t, Form: ui.Filled("q", t.Search, "level", t.Level)}
	if wrong != nil || err != nil {
		p.site.Failed(w, r, "log-server", c, cmp.Or(wrong, err))
		return
	}
	p.site.Show(w, r, "log-server", c)
}
