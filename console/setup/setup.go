// Package setup is the page on which somebody becomes the owner of a new server, and is led to the first talk.
package setup

import (
	"context"
	"embed"
	"net/http"
	"slices"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
)

// Files are the templates of the page.
//
//go:embed *.html *.js
var Files embed.FS

// Topic is what the page follows: speakers that call.
const Topic = "setup"

// Speaker is a device that has called and that nobody has accepted.
type Speaker struct {
	ID, Board, Code, Remote string
	Seen                    time.Time
}

// Role is one of the parts that services play: who hears, thinks, or speaks.
type Role struct {
	Name    string   // asr, llm, tts
	Members []string // of its chain, the first one first
	Own     bool     // only what comes with the program is there
}

// Preset is a service that can be added in this step.
type Preset struct {
	Kind  string   // of its type
	Title string   // in the language of who asks; "": it is any that speaks as OpenAI does
	Roles []string // asr, llm, tts: what it does
	Here  string   // what was found of it on this machine; "": nothing
	Set   bool     // it is set up already
}

// Source tells what the page shows, and does what people decide on it. Its methods may be called at the same time.
type Source interface {
	HasOwner(ctx context.Context) bool
	Speakers(ctx context.Context, most int) (newest []Speaker, more bool)
	Accept(ctx context.Context, by account.Person, id string) error
	Addresses() []string // that speakers can be given, the likeliest first
	// Shut lists the addresses of this machine in its networks at which the server does not listen; local says that it
	// listens at this machine alone, on a port, so that no speaker can reach it.
	Shut() (all []string, port string, local bool)
	Roles() []Role
	Presets(ctx context.Context, lang text.Lang) []Preset // the most useful ones first
	Zone() Zone
	// ZoneWrong says why a name is that of no zone; "": it is one, or empty.
	ZoneWrong(lang text.Lang, name string) string
	// SetZone has the server tell times by the zone of a name from now on.
	SetZone(r *http.Request, by account.Person, name string) error
}

// Zone says by which time zone the server tells times.
type Zone struct {
	Now     *time.Location // that counts
	Name    string         // as it is set; "": the machine's own counts
	Machine string         // the name of that
	Chosen  bool           // somebody has set it: else that of the browser is offered
	Fixed   bool           // it cannot be chosen in the console
	Names   []string       // of zones that people choose from
}

// Clock is the time of day there.
func (z Zone) Clock() string { return time.Now().In(z.Now).Format("15:04") }

// Page leads through the setup.
type Page struct {
	site *ui.Site
	door access.Door
	from Source
}

// New returns the page.
func New(site *ui.Site, door access.Door, from Source) *Page { return &Page{site, door, from} }

// steps are those after there is an owner.
var steps = []string{"owner", "services", "speakers", "address"}

var owners = account.Need{Role: account.Owner, Scope: account.Admin}

const path = ui.Prefix + "setup"

// Routes are those of the page.
func (p *Page) Routes() []access.Route {
	open := func(pattern string, h http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.Anyone, Handler: p.door.OwnPage(h, p.site.Refused), Refused: p.site.Refused}
	}
	routes := []access.Route{open("GET "+path, p.first), open("POST "+path, p.found)}
	for _, step := range steps[1:] {
		routes = append(routes, p.site.Page("GET "+path+"/"+step, access.Route{Need: owners}, func(w http.ResponseWriter, r *http.Request) { p.show(w, r, step, nil) }))
	}
	return append(routes, p.site.Page("POST "+path+"/speakers", access.Route{Need: owners}, p.accept))
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{live.Whole(Topic, owners, "waiting", func(r *http.Request) (string, error) {
		return p.site.Fragment(r, "setup-waiting", p.state(r, "speakers"))
	})}
}

// state holds the content of a step.
type state struct {
	Step      string
	Steps     []mark
	Speakers  []Speaker
	More      bool // speakers than these have called
	Addresses []string
	Local     bool     // no speaker can reach the server
	Shut      []string // addresses that it would have
	Port      string
	Roles     []Role
	Presets   []Preset
	Bare      bool // nothing hears, thinks or speaks but what comes with the program
	Zone      Zone
	Offer     bool // the zone of the browser is put into its field
	Code      ui.QR
	Next      string // path
}

// mark is a step in the bar.
type mark struct {
	Name       string
	Here, Done bool
}

func (p *Page) state(r *http.Request, step string) state {
	at := slices.Index(steps, step)
	s := state{Step: step, Next: ui.Home}
	for i, name := range steps {
		s.Steps = append(s.Steps, mark{name, i == at, i < at})
	}
	if at+1 < len(steps) {
		s.Next = path + "/" + steps[at+1]
	}
	switch step {
	case "services":
		s.Roles, s.Presets = p.from.Roles(), p.from.Presets(r.Context(), ui.Lang(r))
		s.Bare = !slices.ContainsFunc(s.Roles, func(r Role) bool { return !r.Own })
	case "owner":
		s.Zone = p.from.Zone()
	case "speakers":
		s.Speakers, s.More = p.from.Speakers(r.Context(), ui.PageRows)
	case "address":
		s.Addresses = p.from.Addresses()
		s.Speakers, s.More = p.from.Speakers(r.Context(), ui.PageRows)
		if s.Shut, s.Port, s.Local = p.from.Shut(); len(s.Addresses) > 0 && !s.Local {
			s.Code = ui.QROf(s.Addresses[0])
		}
	}
	return s
}

func (p *Page) show(w http.ResponseWriter, r *http.Request, step string, f *ui.Form) {
	p.site.Show(w, r, "setup-"+step, ui.Content{Title: p.site.Say(r, "setup/"+step), Data: p.state(r, step), Form: f})
}

// first asks who owns the server, while nobody does.
func (p *Page) first(w http.ResponseWriter, r *http.Request) {
	if p.from.HasOwner(r.Context()) {
		p.site.NotFound(w, r)
		return
	}
	f := ui.Filled("zone", p.from.Zone().Name, "lang", string(ui.Lang(r)))
	p.site.Show(w, r, "setup-owner", ui.Content{Title: p.site.Say(r, "setup/owner"), Data: p.offering(r), Form: f})
}

// offering is the first step before anything is typed: the browser may offer its zone.
func (p *Page) offering(r *http.Request) state {
	s := p.state(r, "owner")
	s.Offer = !s.Zone.Chosen && !s.Zone.Fixed
	return s
}

// found makes the owner.
func (p *Page) found(w http.ResponseWriter, r *http.Request) {
	if p.from.HasOwner(r.Context()) {
		p.site.NotFound(w, r)
		return
	}
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	if f.Raw("password") != f.Raw("again") {
		f.Wrong("again", p.site.Say(r, "setup/passwords-differ"))
	}
	zone := p.from.Zone()
	chosen := !zone.Fixed && len(f.All("zone")) > 0 && f.Get("zone") != zone.Name
	if zone.Fixed {
		f.Set("zone", zone.Name) // its field is not sent
	}
	if why := p.from.ZoneWrong(ui.Lang(r), f.Get("zone")); chosen && why != "" {
		f.Wrong("zone", why)
	}
	if f.Valid() {
		err := p.door.Found(w, r, f.Get("code"), account.NewUser{Name: f.Get("name"), Password: f.Raw("password"), Locale: string(ui.Chosen(r, f))})
		if err == nil {
			ui.KeepLang(w, r, f)
			if chosen && p.from.SetZone(r, account.Person{Name: f.Get("name"), Role: account.Owner}, f.Get("zone")) != nil {
				p.site.Done(w, r, path+"/services", "setup/zone-later") // the audit says why
				return
			}
			ui.Redirect(w, r, path+"/services")
			return
		}
		if !p.site.Explain(w, r, f, ui.FieldOf(err), err) {
			return
		}
	}
	p.show(w, r, "owner", f)
}

// accept makes speakers the owner's that have called.
func (p *Page) accept(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	for _, id := range f.All("mine") {
		if err := p.from.Accept(r.Context(), access.PersonOf(r), id); err != nil && !p.site.Explain(w, r, f, "", err) {
			return
		}
	}
	if !f.Valid() {
		p.show(w, r, "speakers", f)
		return
	}
	ui.Redirect(w, r, path+"/address")
}
