// Package devices is the pages of speakers: all of them, and one with what can be done to it.
package devices

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
)

// Files are the templates of the pages.
//
//go:embed *.html
var Files embed.FS

// Topics of the pages. That of one device has its id as key.
const (
	AllTopic = "devices"
	OneTopic = "device"
)

// Fleet tells of devices: a [fleet.Fleet].
type Fleet interface {
	List(ctx context.Context) ([]fleet.Device, error)
	Get(ctx context.Context, id string) (d fleet.Device, ok bool, err error)
}

// Letters keeps what devices are to be told: a [mail.Office].
type Letters interface {
	Send(ctx context.Context, l mail.Letter) (mail.Letter, error)
	Last(ctx context.Context, device string, limit int) ([]mail.Letter, error)
	Withdraw(ctx context.Context, id string) (mail.Letter, error)
	Find(ctx context.Context, id string) (mail.Letter, error)
}

// Book does what people decide about devices.
type Book interface {
	Claim(ctx context.Context, by account.Person, code string) (id string, err error) // makes a waiting device theirs
	Accept(ctx context.Context, by account.Person, id string) error                   // the same without its code
	Rename(ctx context.Context, by account.Person, id, name string) error
	Refuse(ctx context.Context, by account.Person, id string) error
	Forget(ctx context.Context, by account.Person, id string) (left []string, err error)
	Assign(ctx context.Context, by account.Person, id, agent string) error
	Agents(by account.Person) []string // that a person may choose
	Give(ctx context.Context, by account.Person, id, name string) error
	Heirs(ctx context.Context) ([]Heir, error) // who can have a device
	Kept(ctx context.Context, id string) (Kept, error)
	Keep(ctx context.Context, id string, text, sound *int) error // nil: as the settings say
}

// Options say what the pages use. All must be set.
type Options struct {
	Fleet      Fleet
	Letters    Letters
	Book       Book
	Find       func(id string) (remote.Device, error) // a connected device
	Transcript func(id string) []directory.Line       // of a connected device
	ID         func(typed string) string              // the one spelling of a device's id
	Owner      func(ctx context.Context, id string) (string, error)
	MaxDays    int                                                  // for which a device can be kept, if not for ever
	Day        func(ctx context.Context, id string) ([]Hour, error) // the turns of the last hours, the newest at the end
	Callers    func() []string                                      // who has asked last where to connect, a line each
}

// Page shows devices.
type Page struct {
	site *ui.Site
	door access.Door
	o    Options
}

// New returns the pages.
func New(site *ui.Site, door access.Door, o Options) *Page { return &Page{site, door, o} }

const path = ui.Prefix + "devices"

var (
	look    = account.Need{Role: account.Viewer, Scope: account.Admin}
	pair    = account.Need{Role: account.Member, Scope: account.Admin}
	own     = account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	owners  = account.Need{Role: account.Owner, Scope: account.Admin}
	forgets = account.Need{Role: account.Owner, Scope: account.Admin, Fresh: true}
)

// Routes are those of the pages.
func (p *Page) Routes() []access.Route {
	page := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		route := access.Route{Need: need}
		if need.Own {
			route.Owner = p.owner
		}
		return p.site.Page(pattern, route, h)
	}
	return []access.Route{
		page("GET "+path, look, func(w http.ResponseWriter, r *http.Request) { p.list(w, r, nil) }),
		page("POST "+path, pair, p.claim),
		page("POST "+path+"/decide", owners, p.decide),
		page("GET "+path+"/{id}", own, func(w http.ResponseWriter, r *http.Request) { p.one(w, r, nil) }),
		page("POST "+path+"/{id}", own, p.change),
		page("POST "+path+"/{id}/forget", forgets, p.forget),
		page("POST "+path+"/{id}/owner", forgets, p.give),
		page("POST "+path+"/{id}/keep", owners, p.keep),
	}
}

func (p *Page) owner(r *http.Request) (string, error) {
	return p.o.Owner(r.Context(), p.o.ID(r.PathValue("id")))
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{
		{Name: AllTopic, Need: look, Parts: func(r *http.Request, _ string) ([]live.Part, error) {
			l, err := p.listing(r, "", "")
			if err != nil {
				return nil, err
			}
			html, err := p.site.Fragment(r, "devices-rows", l)
			return []live.Part{{ID: "devices", HTML: html}}, err
		}},
		{Name: OneTopic, Need: own, Owner: func(r *http.Request, id string) (string, error) { return p.o.Owner(r.Context(), id) }, Parts: p.oneParts},
	}
}

// listing is the page of all devices, as far as somebody may see them.
type listing struct {
	Devices []row
	Waiting []row // for somebody to accept them
	More    int   // how many more of these there are
	Search  string
	Live    bool    // it is the first page, of all
	Next    string  // path of the next page; "": there is none
	Counts  []count // by state, for who may see no single one
	Owner   bool    // may decide about all
	May     bool    // make devices theirs

	Callers []string // who has asked last, where nobody waits with the code that was typed
}

// row is a device with the words and the shape of its state.
type row struct {
	fleet.Device
	Kind  string
	Since time.Time
}

// count holds the number of devices in one state.
type count struct {
	State fleet.State
	Kind  string
	N     int
}

// Shape returns the shape in which a state is drawn.
func Shape(s fleet.State) string { return shapes[s] }

// shapes of the states.
var shapes = map[fleet.State]string{
	fleet.Speaking: "busy", fleet.Listening: "busy", fleet.Thinking: "busy", fleet.Idle: "ok", fleet.Asleep: "idle", fleet.Started: "idle",
	fleet.Waiting: "warn", fleet.Refused: "bad",
}

// listing returns the devices that are searched for, those behind a place in the list; "": from its beginning.
func (p *Page) listing(r *http.Request, search, after string) (listing, error) {
	who := access.PersonOf(r)
	l := listing{Search: search, Live: search == "" && after == "", Owner: who.Is(account.Owner), May: who.Is(account.Member)}
	all, err := p.o.Fleet.List(r.Context())
	if err != nil {
		return l, err
	}
	if !l.May {
		l.Counts = counted(all)
		return l, nil
	}
	var from place
	if after != "" {
		if from, err = placeOf(after); err != nil {
			return l, err
		}
	}
	for _, d := range all {
		if !who.Knows(d.Owner) {
			continue
		}
		if !holds(d, search) && (search == "" || p.o.ID(search) != d.ID) {
			continue
		}
		made := row{d, shapes[d.State], d.Since}
		switch {
		case d.State != fleet.Waiting:
			if after == "" || from.compare(made.place()) < 0 {
				l.Devices = append(l.Devices, made)
			}
		case after != "": // they are on the first page
		case len(l.Waiting) < shown:
			l.Waiting = append(l.Waiting, made)
		default:
			l.More++
		}
	}
	slices.SortFunc(l.Devices, func(a, b row) int { return a.place().compare(b.place()) })
	if len(l.Devices) > shown {
		l.Devices = l.Devices[:shown]
		query := url.Values{"after": {l.Devices[shown-1].place().String()}}
		if search != "" {
			query.Set("q", search)
		}
		l.Next = path + "?" + query.Encode()
	}
	return l, nil
}

// counted counts devices by their states.
func counted(all []fleet.Device) (out []count) {
	for _, s := range fleet.States() {
		c := count{State: s, Kind: shapes[s]}
		for _, d := range all {
			if d.State == s {
				c.N++
			}
		}
		if c.N > 0 {
			out = append(out, c)
		}
	}
	return out
}

// holds reports whether a device is one that is searched for.
func holds(d fleet.Device, search string) bool {
	return strings.Contains(strings.ToLower(strings.Join([]string{d.ID, d.Name, d.Board, d.Agent, d.From}, " ")), strings.ToLower(search))
}

func (p *Page) list(w http.ResponseWriter, r *http.Request, f *ui.Form) {
	l, err := p.listing(r, strings.TrimSpace(r.URL.Query().Get("q")), r.URL.Query().Get("after"))
	c := ui.Content{Title: p.site.Say(r, "devices/title"), Data: &l, Form: f}
	if err != nil {
		p.site.Failed(w, r, "devices", c, err)
		return
	}
	if l.Owner && f != nil && f.Mistake("code") != "" {
		l.Callers = p.o.Callers()
	}
	p.site.Show(w, r, "devices", c)
}

// claim makes a waiting device that of whoever types its code.
func (p *Page) claim(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id, err := p.o.Book.Claim(r.Context(), access.PersonOf(r), strings.ReplaceAll(f.Get("code"), " ", ""))
	p.door.Did(r, "device.pair", id, err)
	if err == nil {
		p.site.Done(w, r, path+"/"+id, "devices/paired")
		return
	}
	if p.site.Explain(w, r, f, "code", err) {
		p.list(w, r, f)
	}
}

// decide accepts or refuses a waiting device without its code.
func (p *Page) decide(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id, do, done := p.o.ID(f.Get("device")), p.o.Book.Accept, "devices/paired"
	if f.Get("do") == "refuse" {
		do, done = p.o.Book.Refuse, "devices/refused"
	}
	err := do(r.Context(), access.PersonOf(r), id)
	p.door.Did(r, "device."+f.Get("do"), id, err)
	if err == nil {
		p.site.Done(w, r, path, done)
		return
	}
	if p.site.Explain(w, r, f, "", err) {
		p.list(w, r, f)
	}
}
