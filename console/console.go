// Package console is the page by which people see, change and talk to their server, of all its parts.
package console

import (
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/console/agents"
	"xiaozhi/console/conversations"
	"xiaozhi/console/devices"
	"xiaozhi/console/doctor"
	"xiaozhi/console/documents"
	"xiaozhi/console/live"
	"xiaozhi/console/overview"
	"xiaozhi/console/people"
	"xiaozhi/console/services"
	"xiaozhi/console/settings"
	"xiaozhi/console/setup"
	"xiaozhi/console/talk"
	"xiaozhi/console/tools"
	"xiaozhi/console/trials"
	"xiaozhi/console/ui"
	"xiaozhi/console/voices"
	"xiaozhi/console/waterfall"
	"xiaozhi/internal/access"
	changes "xiaozhi/internal/settings"
	"xiaozhi/internal/text"
)

// Parts are the parts of the program that the console shows. Each page says what it wants of its part.
type Parts struct {
	Guard   *access.Guard
	Name    func() string // of the server
	Zone    func() *time.Location
	Version string
	Explain func(lang text.Lang, err error) string // as [ui.Options] has it
	Watch   func() (done func())                   // is called for each page that is followed, and done at its end
	Log     *slog.Logger

	Overview overview.Options
	Agents   agents.Options
	Papers   documents.Options
	Trials   trials.Options
	Doctor   doctor.Source
	Setup    setup.Source
	Services services.Source
	People   people.Options
	Devices  devices.Options
	Talk     talk.Source
	Talks    conversations.Options
	Tools    *tools.Desk
	Change   tools.Settings // nil: nothing is changed
	Settings *changes.Settings
	Backups  settings.Backups
	Voices   *voices.Desk // nil: nobody is known by the voice
}

// Console is all pages. Its methods may be called at the same time.
type Console struct {
	door   access.Door
	site   *ui.Site
	hub    *live.Hub
	phone  http.HandlerFunc
	routes []access.Route
}

// page is one of the pages.
type page interface {
	Routes() []access.Route
	Topics() []live.Topic
}

// drawn is a site of all pages: their templates are parsed at most once, however many servers a process has.
var drawn = sync.OnceValues(func() (*ui.Site, error) {
	return ui.New(ui.Options{Files: []fs.FS{
		overview.Files,
		setup.Files,
		services.Files,
		people.Files,
		devices.Files,
		agents.Files,
		documents.Files,
		trials.Files,
		conversations.Files,
		talk.Files, talk.Scripts, waterfall.Files,
		doctor.Files,
		tools.Files,
		settings.Files,
		voices.Files,
	}})
})

// New makes the pages, or says which text or file is wrong.
func New(p Parts) (*Console, error) {
	site, err := drawn()
	if err != nil {
		return nil, err
	}
	site = site.With(ui.Options{Name: p.Name, Zone: p.Zone, Owned: p.Setup.HasOwner, Version: p.Version, Explain: p.Explain, Log: p.Log})
	door := access.Door{Guard: p.Guard}
	checkup := doctor.New(site, door, p.Doctor)
	c := &Console{door: door, site: site, phone: checkup.ShowPhone}
	var topics []live.Topic
	for _, page := range []page{
		overview.New(site, p.Overview),
		setup.New(site, door, p.Setup),
		services.New(site, p.Services),
		people.New(site, door, p.People),
		devices.New(site, door, p.Devices),
		agents.New(site, p.Agents),
		documents.New(site, p.Papers),
		trials.New(site, p.Trials),
		conversations.New(site, p.Talks),
		talk.New(site, p.Talk),
		checkup,
		tools.New(site, door, p.Tools, p.Change),
		settings.New(site, p.Settings, p.Backups),
		voices.New(site, door, p.Voices),
	} {
		c.routes = append(c.routes, page.Routes()...)
		topics = append(topics, page.Topics()...)
	}
	c.routes = append(c.routes, c.leadingBack()...)
	c.hub = live.New(p.Guard, site.InTurn, p.Watch, topics...)
	return c, nil
}

// leadingBack leads from the paths of forms that are no pages to the pages that have them: a refused form stands there, and who
// loads that again, or changes the language on it, wants the page.
func (c *Console) leadingBack() (all []access.Route) {
	pages := map[string]bool{}
	for _, r := range c.routes {
		if page, is := strings.CutPrefix(r.Pattern, "GET "); is {
			pages[page] = true
		}
	}
	for _, r := range c.routes {
		form, is := strings.CutPrefix(r.Pattern, "POST ")
		if !is || pages[form] || r.Refused == nil {
			continue
		}
		above, levels := form, 0
		for above != "." && above != "/" && !pages[above] {
			above, levels = path.Dir(above), levels+1
		}
		if !pages[above] {
			continue
		}
		lead := func(w http.ResponseWriter, r *http.Request) {
			to := r.URL.EscapedPath()
			for range levels {
				to = path.Dir(to)
			}
			ui.Redirect(w, r, to)
		}
		all = append(all, access.Route{Pattern: "GET " + form, For: access.Anyone, Handler: c.door.OwnPage(http.HandlerFunc(lead), c.site.Refused)})
	}
	return all
}

// Routes are those of all pages. What is not there is a page that says so, and "/" leads browsers here.
func (c *Console) Routes() []access.Route {
	missing := func(pattern string, h http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.Anyone, Handler: c.door.OwnPage(h, c.site.Refused)}
	}
	return slices.Concat(c.routes, c.site.Routes(c.door), []access.Route{
		c.hub.Route(c.site.Refused),
		missing("GET /console/", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == ui.Prefix {
				ui.Redirect(w, r, ui.Home)
				return
			}
			c.site.NotFound(w, r)
		}),
		missing("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Accept"), "text/html") {
				c.site.NotFound(w, r)
				return
			}
			ui.Redirect(w, r, ui.Home)
		}),
	})
}

// Leading has browsers that may not take something away now read why on a page, which leads on, as that which asks for the
// password again does. Programs are answered by JSON.
func (c *Console) Leading(routes []access.Route) []access.Route {
	if c == nil {
		return routes
	}
	for i, route := range routes {
		if route.For != access.People || route.Use != access.Export || route.Refused != nil || !strings.HasPrefix(route.Pattern, "GET "+ui.Prefix) {
			continue
		}
		routes[i].Refused = func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Header.Get("Authorization") != "" {
				c.door.Fail(w, r, err)
				return
			}
			c.site.Refused(w, r, err)
		}
	}
	return routes
}

// Phone tells whoever has opened a link for phones that it works.
func (c *Console) Phone(w http.ResponseWriter, r *http.Request) { c.phone(w, r) }

// Changed tells open pages that something has changed. It never waits.
func (c *Console) Changed(topic, key string) {
	if c != nil {
		c.hub.Changed(topic, key)
	}
}

// Close ends the streams of open pages.
func (c *Console) Close() {
	if c != nil {
		c.hub.Close()
	}
}
