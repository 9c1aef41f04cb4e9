// Package people is the pages of accounts: one's own, everybody's, and the log of what was done.
package people

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// Files are the templates of the pages.
//
//go:embed *.html
var Files embed.FS

// LogTopic names the changes of the server's log, which its page follows.
const LogTopic = "log"

// Page shows accounts and the log.
type Page struct {
	site     *ui.Site
	door     access.Door
	accounts *account.Service
	log      func() string // the last lines of the server's log
	now      func() time.Time
}

// Options configure a [Page].
type Options struct {
	Accounts *account.Service
	Log      func() string // the last lines of the server's log
}

// New returns the pages.
func New(site *ui.Site, door access.Door, o Options) *Page {
	return &Page{site, door, o.Accounts, o.Log, time.Now}
}

const (
	path  = ui.Prefix + "users"
	words = "people/" // begins the ids of texts
)

var (
	self       = account.Need{Role: account.Viewer, Scope: account.Admin}
	freshSelf  = account.Need{Role: account.Viewer, Scope: account.Admin, Fresh: true}
	owners     = account.Need{Role: account.Owner, Scope: account.Admin}
	again      = account.Need{Role: account.Owner, Scope: account.Admin, Again: true}
	freshOwner = account.Need{Role: account.Owner, Scope: account.Admin, Fresh: true}
)

// Routes are those of the pages. What changes accounts needs the password again.
func (p *Page) Routes() []access.Route {
	page := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		return p.site.Page(pattern, access.Route{Need: need}, h)
	}
	return []access.Route{
		page("GET "+path, owners, func(w http.ResponseWriter, r *http.Request) { p.users(w, r, nil, once{}) }),
		page("POST "+path, freshOwner, p.changeUsers),
		page("GET "+path+"/me", self, func(w http.ResponseWriter, r *http.Request) { p.me(w, r, nil, once{}) }),
		page("POST "+path+"/me/password", self, p.password),
		page("POST "+path+"/me", freshSelf, p.changeMe),
		page("GET "+ui.Prefix+"log", owners, p.audit),
		page("GET "+ui.Prefix+"log/server", owners, p.server),
		{Pattern: "GET " + exportPath, For: access.People, Need: again, Use: access.Export, Handler: http.HandlerFunc(p.export)},
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{{Name: LogTopic, Need: owners, Parts: func(r *http.Request, level string) ([]live.Part, error) {
		t, err := p.lines(r, level)
		if err != nil {
			return nil, err
		}
		html, err := p.site.Fragment(r, "log-lines", t)
		return []live.Part{{ID: "lines", HTML: html}}, err
	}}}
}

func (p *Page) actor(r *http.Request) account.Actor {
	return access.PersonOf(r).Actor(p.door.From(r).Remote.String())
}

// once holds a secret that was made and that a page shows a single time.
type once struct {
	Token      string
	Invitation string
	Enrolment  *account.Enrolment
	Code       ui.QR
}

// mine is the page of one's own account.
type mine struct {
	Once     once
	Second   bool
	Sessions ui.Rows[session]
	Others   bool // there are other sessions than this one
	This     account.Person
	Tokens   ui.Rows[store.APIToken]
	Now      time.Time
}

// session is one with the name of its browser.
type session struct {
	store.Session

	Shown string
}

// shown names the browser of a session.
func (p *Page) shown(r *http.Request, s store.Session) session {
	browser, system := browserOf(s.Browser)
	switch {
	case browser == "":
		return session{s, cmp.Or(system, p.site.Say(r, "people/unknown-browser"))}
	case system == "":
		return session{s, browser}
	}
	return session{s, p.site.Say(r, "people/browser-on", browser, system)}
}

func (p *Page) me(w http.ResponseWriter, r *http.Request, f *ui.Form, o once) {
	who := access.PersonOf(r)
	m := mine{Once: o, Second: who.Second, This: who, Now: p.now()}
	c := ui.Content{Title: p.site.Say(r, "people/me"), Data: &m, Form: f}
	if err := p.own(r, &m); err != nil {
		p.site.Failed(w, r, "me", c, err)
		return
	}
	p.site.Show(w, r, "me", c)
}

// sessionID is how many characters of its hash tell a session from others.
const sessionID = 16

// own takes one's sessions and tokens that an address asks for.
func (p *Page) own(r *http.Request, m *mine) error {
	open, err := p.accounts.Sessions(r.Context(), m.This.Name)
	var all []session
	for _, s := range open {
		all = append(all, p.shown(r, s))
	}
	m.Others = len(all) > 1
	m.Sessions, err = ui.List[session]{
		Path: path + "/me", Name: "sessions", Newest: true,
		Key:  func(s session) string { return access.Before(s.SeenAt, s.Hash[:min(sessionID, len(s.Hash))]) },
		Text: func(s session) string { return s.Shown + " " + s.Browser + " " + s.Remote },
	}.Page(r, all, err)
	if err != nil {
		return err
	}
	tokens, err := p.accounts.Tokens(r.Context(), m.This.Name)
	m.Tokens, err = ui.List[store.APIToken]{
		Path: path + "/me", Name: "tokens", Newest: true,
		Key:  func(t store.APIToken) string { return access.Before(t.CreatedAt, t.ID) },
		Text: func(t store.APIToken) string { return t.Name + " " + t.Head + " " + t.Scopes },
	}.Page(r, tokens, err)
	return err
}

// password sets one's own password. The one before is shown with it, and all sessions end but a new one here.
func (p *Page) password(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	who := access.PersonOf(r)
	shown := account.Proof{Password: f.Raw("current"), Code: f.Get("second")}
	if f.Raw("password") != f.Raw("again") {
		f.Wrong("again", p.site.Say(r, "setup/passwords-differ"))
	} else if err := p.accounts.Shows(r.Context(), who, shown, p.door.From(r)); err != nil {
		if !p.site.Explain(w, r, f, "current", err) {
			return
		}
	} else if err := p.accounts.SetPassword(r.Context(), p.actor(r), who.Name, f.Raw("password")); err != nil && !p.site.Explain(w, r, f, "password", err) {
		return
	}
	if !f.Valid() {
		p.me(w, r, f, once{})
		return
	}
	ui.Redirect(w, r, ui.Prefix+"login?to="+path+"/me")
}

// changeMe does what somebody has asked for on the page of their account.
func (p *Page) changeMe(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	who, ctx, shown := access.PersonOf(r), r.Context(), once{}
	var err error
	done := ""
	switch f.Get("do") {
	case "end-sessions":
		err, done = p.accounts.EndOtherSessions(ctx, who, p.actor(r)), "people/sessions-ended"
	case "token":
		shown.Token, err = p.newToken(r, f)
	case "revoke":
		err, done = p.accounts.Revoke(ctx, p.actor(r), who.Name, f.Get("head")), "people/token-revoked"
	case "enrol":
		shown, err = p.enrol(ctx, who)
	case "confirm":
		if shown, err = p.confirm(r, f); shown.Enrolment == nil {
			done = "people/second-on"
		}
	case "unfactor":
		err, done = p.accounts.Unfactor(ctx, p.actor(r), who.Name), "people/second-off"
	default:
		p.site.NotFound(w, r)
		return
	}
	p.after(w, r, f, err, done, path+"/me", func() { p.me(w, r, f, shown) })
}

// after answers what was asked for: by another page if all is done, else by the same one.
func (p *Page) after(w http.ResponseWriter, r *http.Request, f *ui.Form, err error, done, to string, again func()) {
	switch {
	case err != nil && !p.site.Explain(w, r, f, "", err):
	case err != nil || !f.Valid() || done == "":
		again()
	default:
		p.site.Done(w, r, to, done)
	}
}

func (p *Page) enrol(ctx context.Context, who account.Person) (once, error) {
	e, err := p.accounts.Enrol(ctx, who)
	if err != nil {
		return once{}, err
	}
	return once{Enrolment: &e, Code: ui.QROf(e.Address)}, nil
}

// confirm turns a second factor on by its first code. One that waits for a right code is shown again.
func (p *Page) confirm(r *http.Request, f *ui.Form) (once, error) {
	who := access.PersonOf(r)
	e, waits := p.accounts.Enrolling(who)
	err := p.accounts.Confirm(r.Context(), who, f.Get("code"), p.door.From(r))
	switch {
	case err == nil:
		return once{}, nil
	case !waits && errors.Is(err, account.ErrBadLogin):
		f.Wrong("", p.site.Say(r, "people/second-late"))
		return once{}, nil
	case errors.Is(err, account.ErrBadLogin):
		f.Wrong("code", p.site.Say(r, "people/second-wrong"))
		err = nil
	}
	if !waits {
		return once{}, err
	}
	return once{Enrolment: &e, Code: ui.QROf(e.Address)}, err
}

func (p *Page) newToken(r *http.Request, f *ui.Form) (secret string, err error) {
	scopes, err := account.ParseScopes(strings.Join(f.All("scope"), ","))
	if err != nil {
		return "", err
	}
	n := account.NewToken{Label: f.Get("label"), Scopes: scopes}
	if days := f.Get("days"); days != "" {
		count, err := strconv.Atoi(days)
		if err != nil || count < 1 || count > account.MaxTokenDays {
			f.Wrong("days", p.site.Say(r, "people/days-bad", account.MaxTokenDays))
			return "", nil
		}
		n.Ends = p.now().AddDate(0, 0, count)
	}
	return p.accounts.NewToken(r.Context(), p.actor(r), access.PersonOf(r).Name, n)
}
