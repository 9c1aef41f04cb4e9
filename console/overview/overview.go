// Package overview is the page that shows how the server is, and what needs somebody.
package overview

import (
	"context"
	"embed"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
)

// Files are the templates of the page.
//
//go:embed *.html
var Files embed.FS

// Topic is what pages follow that show it.
const Topic = "overview"

// Device is a device that is connected.
type Device struct {
	ID, Name string
	State    string // as the words of devices name it
	Kind     string // the shape of the state
	Since    time.Time
	Words    string // the last that was said; "": nothing, or not for who looks
}

// Problem is something that needs somebody.
type Problem struct {
	Bad      bool   // it does not work, otherwise it is worth a look
	What, Do string // sentences
	Path     string // where it is looked after; "": nowhere
}

// Devices are those that somebody may see.
type Devices struct {
	Connected []Device
	Known     int
	Waiting   []string // names of those that wait for a person
}

// Today sums up the turns since midnight.
type Today struct {
	Turns, Failed, Cut int
	P50, P95           time.Duration // zero: no turn tells
	Micros             int64         // millionths of the currency
	Currency           string
	Unpriced           int // turns without a known price
}

// Source tells what the page shows. person is the id of an account whose devices alone count, "" all. Its methods may be
// called at the same time.
type Source interface {
	Devices(ctx context.Context, person string) (Devices, error)
	Problems(ctx context.Context, lang text.Lang, waiting []string) ([]Problem, error) // waiting: names of devices
	Today(ctx context.Context, person string) (Today, error)
}

// Quiet is quiet mode: devices say nothing that nobody has asked for.
type Quiet struct {
	On    bool
	Until time.Time // zero: until somebody switches it off
	By    string    // name of who has switched it on
}

// Switch begins and ends quiet mode. Its methods may be called at the same time.
type Switch interface {
	Now() Quiet
	Begin(r *http.Request, until time.Time) error // zero: until somebody ends it
	End(r *http.Request) error
}

// Options of the page. Both must be set.
type Options struct {
	From  Source
	Quiet Switch
}

// shown is how many connected devices the overview names.
const shown = 20

// Page shows the overview.
type Page struct {
	site  *ui.Site
	from  Source
	quiet Switch
}

// New returns the page.
func New(site *ui.Site, o Options) *Page { return &Page{site, o.From, o.Quiet} }

var (
	anybody = account.Need{Role: account.Viewer, Scope: account.Admin}
	owners  = account.Need{Role: account.Owner, Scope: account.Admin}
)

// Routes are those of the page.
func (p *Page) Routes() []access.Route {
	return []access.Route{
		p.site.Page("GET /console/overview", access.Route{Need: anybody}, p.show),
		p.site.Page("POST /console/overview/quiet", access.Route{Need: owners}, p.switchQuiet),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{{Name: Topic, Need: anybody, Parts: func(r *http.Request, _ string) ([]live.Part, error) {
		s, err := p.state(r)
		if err != nil {
			return nil, err
		}
		html, err := p.site.Fragment(r, "overview-now", s)
		return []live.Part{{ID: "overview", HTML: html}}, err
	}}}
}

// state holds the content of the page.
type state struct {
	Connected []Device
	More      int // that are connected, and not shown
	Known     int
	Problems  []Problem
	Today     Today
	Quiet     Quiet
	Owner     bool
	May       bool // talk
}

func (p *Page) state(r *http.Request) (s state, err error) {
	who, ctx := access.PersonOf(r), r.Context()
	s.Owner, s.May = who.Is(account.Owner), who.Is(account.Member)
	s.Quiet = p.quiet.Now()
	person := ""
	if s.May && !s.Owner {
		person = who.ID
	}
	d, err := p.from.Devices(ctx, person)
	if err != nil {
		return s, err
	}
	s.Connected, s.Known = d.Connected, d.Known
	if s.More = max(0, len(s.Connected)-shown); s.More > 0 {
		s.Connected = s.Connected[:shown]
	}
	for i := range s.Connected {
		if !s.May { // a viewer sees that it works, and nothing that was said
			s.Connected[i].Words, s.Connected[i].ID, s.Connected[i].Name = "", "", ""
		}
	}
	if s.Owner {
		if s.Problems, err = p.from.Problems(ctx, ui.Lang(r), d.Waiting); err != nil {
			return s, err
		}
	}
	s.Today, err = p.from.Today(ctx, person)
	return s, err
}

func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	s, err := p.state(r)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	p.site.Show(w, r, "overview", ui.Content{Title: p.site.Say(r, "overview/title"), Data: s})
}

// lengths are how long quiet mode may be switched on; 0: until somebody switches it off.
var lengths = map[string]time.Duration{"hour": time.Hour, "night": 8 * time.Hour, "on": 0}

// switchQuiet switches quiet mode.
func (p *Page) switchQuiet(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	length, on := lengths[f.Get("do")]
	done, err := "overview/quiet-began", error(nil)
	switch {
	case on:
		var until time.Time
		if length > 0 {
			until = time.Now().Add(length)
		}
		err = p.quiet.Begin(r, until)
	case f.Get("do") == "off":
		done, err = "overview/quiet-ended", p.quiet.End(r)
	default:
		p.site.NotFound(w, r)
		return
	}
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	p.site.Done(w, r, "/console/overview#quiet", done)
}

// Cost returns the price of the turns, with the owner's currency.
func (t Today) Cost() string {
	if t.Micros == 0 {
		return strings.TrimSpace("0 " + t.Currency)
	}
	cost := strconv.FormatFloat(float64(t.Micros)/1e6, 'f', 4, 64)
	if t.Currency == "" {
		return cost
	}
	return cost + " " + t.Currency
}
