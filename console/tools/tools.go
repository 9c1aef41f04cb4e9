// Package tools is the pages of tools: all that the model can call, why each is as it is, a form to call one by, other
// people's servers of tools, and the calls that were made.
package tools

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/toolcount"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/router"
	"xiaozhi/store"
)

// Files are the templates of the pages.
//
//go:embed *.html *.css
var Files embed.FS

// Topics of the pages.
const (
	Topic        = "tools"        // what is offered
	TopicServers = "tool-servers" // how other people's servers are
)

// Source tells what there is, and calls it. Its methods may be called at the same time.
type Source interface {
	// Devices lists all devices.
	Devices(ctx context.Context) ([]fleet.Device, error)
	// Survey lists the tools of a device; of one that is not connected those that it had, and live is false.
	Survey(ctx context.Context, device string) (all []router.Listed, live bool, err error)
	// Here lists the tools that need no device.
	Here() []router.Listed
	// Call runs a tool on a connected device. invalid says why the arguments cannot be used, if the response is about that.
	Call(ctx context.Context, device string, call mcp.Call) (response mcp.ActionResponse, invalid string, err error)
	// CallHere runs one without a device. sure: who asks has said yes where the tool asks for that.
	CallHere(ctx context.Context, call mcp.Call, sure bool) (response mcp.ActionResponse, invalid string)
	// FindCalls lists the calls that were kept.
	FindCalls(ctx context.Context, f store.CallFilter, p store.Page) (store.CallList, error)

	// Counts tells how many calls there were since the program was started.
	Counts() []toolcount.Count

	// Servers lists other people's servers of tools.
	Servers() []external.Status
	// TestServer asks one for its tools, or tries to connect.
	TestServer(ctx context.Context, name string) (took time.Duration, tools int, err error)
	// TryServer connects once to a server that is not kept yet, and reads its list.
	TryServer(ctx context.Context, name string, e external.Entry) (now external.Status, took time.Duration, err error)
	// RestartServer ends the connection to one, and connects again.
	RestartServer(name string) error
	// Login begins a login to one, and returns the link for the browser, which is led back to redirect.
	Login(ctx context.Context, name, redirect string) (link string, err error)
	// LoggedIn takes the query with which a browser came back, and returns the name of the server.
	LoggedIn(ctx context.Context, answer url.Values) (name string, err error)
	// Logout forgets what one has granted.
	Logout(ctx context.Context, name string) error

	DeviceID(typed string) string                                   // the one spelling of a device's id
	DeviceOwner(ctx context.Context, device string) (string, error) // id of an account; "": nobody's
}

// Desk looks at tools and calls them, for pages and programs, which are counted together.
type Desk struct {
	from Source
	pace *access.Pace
}

// NewDesk returns a desk.
func NewDesk(from Source) *Desk { return &Desk{from: from, pace: access.NewPace()} }

// Page shows tools.
type Page struct {
	*Desk

	site *ui.Site
	door access.Door
	set  Settings // nil: nothing can be changed
}

// New returns the pages. Without settings nothing is changed by them.
func New(site *ui.Site, door access.Door, desk *Desk, set Settings) *Page {
	return &Page{Desk: desk, site: site, door: door, set: set}
}

// Paths of the pages.
const (
	path        = ui.Prefix + "tools"
	herePath    = path + "/here/"
	onPath      = path + "/on/"
	callsPath   = path + "/calls"
	serversPath = path + "/servers"
	editPath    = serversPath + "/edit"
	loginPath   = serversPath + "/login"
)

var (
	members = account.Need{Role: account.Member, Scope: account.Admin}
	owners  = account.Need{Role: account.Owner, Scope: account.Admin}
	own     = account.Need{Role: account.Member, Scope: account.Admin, Own: true}
)

// Routes are those of the pages: members see the tools of devices that are theirs.
func (p *Page) Routes() []access.Route {
	whose := func(r *http.Request) (string, error) {
		return p.from.DeviceOwner(r.Context(), p.from.DeviceID(r.PathValue("device")))
	}
	page := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		route := access.Route{Need: need}
		if need.Own {
			route.Owner = whose
		}
		return p.site.Page(pattern, route, h)
	}
	return []access.Route{
		page("GET "+path, members, p.list),
		page("GET "+herePath+"{tool}", owners, p.one),
		page("POST "+herePath+"{tool}", owners, p.act),
		page("GET "+onPath+"{device}/{tool}", own, p.one),
		page("POST "+onPath+"{device}/{tool}", own, p.act),
		page("GET "+callsPath, members, p.calls),
		page("GET "+serversPath, owners, p.servers),
		page("POST "+serversPath, owners, p.actServer),
		page("GET "+editPath, owners, p.editServer),
		page("POST "+editPath, owners, p.saveServer),
		page("GET "+loginPath, owners, logins{p}.back),
		page("POST "+loginPath, owners, logins{p}.paste),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{
		{Name: Topic, Need: members, Parts: func(r *http.Request, _ string) ([]live.Part, error) {
			l, err := p.listing(r, filter{})
			if err != nil {
				return nil, err
			}
			html, err := p.site.Fragment(r, "tools-rows", l)
			return []live.Part{{ID: "tools", HTML: html}}, err
		}},
		{Name: TopicServers, Need: owners, Parts: func(r *http.Request, _ string) ([]live.Part, error) {
			s, err := p.fleet(r, nil)
			if err != nil {
				return nil, err
			}
			html, err := p.site.Fragment(r, "tools-server-list", s)
			return []live.Part{{ID: "servers", HTML: html}}, err
		}},
	}
}

// mine lists the devices whose tools a person may see, the connected ones first.
func (d *Desk) mine(r *http.Request) (all []fleet.Device, err error) {
	who := access.PersonOf(r)
	known, err := d.from.Devices(r.Context())
	for _, one := range known {
		if who.Knows(one.Owner) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b fleet.Device) int {
		switch x, y := a.State.Connected(), b.State.Connected(); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	return all, err
}
