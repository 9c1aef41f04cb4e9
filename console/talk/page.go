package talk

import (
	"context"
	"crypto/rand"
	"embed"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/connection/identity"
	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/console/waterfall"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

//go:embed *.html script
var files embed.FS

// Files are the templates of the page; Scripts are what it and its style are made of.
var (
	Files      fs.FS = files
	Scripts, _       = fs.Sub(files, "script") // the folder is there
)

// lastPath gives the picture of the last turn.
const lastPath = "/console/talk/last"

// Source tells what the page shows. Its methods may be called at the same time.
type Source interface {
	// Agents names those that a person may talk to.
	Agents(p account.Person) []string
	// LastTurn returns the last turn of a device that was kept; nil: there is none.
	LastTurn(ctx context.Context, device string) (*store.Turn, error)
	// DeviceOwner is the id of the person whose a device is; "": nobody's.
	DeviceOwner(ctx context.Context, device string) (string, error)
	// HTTPSPort is that of the server's own listener for browsers; "": there is none.
	HTTPSPort() string
}

// Page lets a person talk by the browser.
type Page struct {
	site *ui.Site
	from Source
}

// New returns the page.
func New(site *ui.Site, from Source) *Page { return &Page{site, from} }

// Routes are those of the page, beside that of tickets.
func (p *Page) Routes() []access.Route {
	own := need
	own.Own = true
	return []access.Route{
		p.site.Page("GET /console/talk", access.Route{Need: need}, p.show),
		p.site.Page("GET "+lastPath, access.Route{Need: own, Owner: func(r *http.Request) (string, error) {
			return p.from.DeviceOwner(r.Context(), deviceIn(r))
		}}, p.last),
	}
}

// Topics are none: the page has a socket of its own.
func (p *Page) Topics() []live.Topic { return nil }

// state holds what the template shows.
type state struct {
	Agents  []string
	Agent   string // that was asked for by the link
	Faces   []string
	Words   []string
	Host    string // with its port
	Local   string // address of the page on the machine itself
	Port    string
	Browser string // what the browser calls itself
	HTTPS   string // address of the page by https; "": the server has none
	Ticket  string
	Last    string
}

// faces are those that every display knows.
var faces = []string{
	"neutral", "happy", "laughing", "funny", "sad", "angry", "crying", "loving", "embarrassed", "surprised", "shocked",
	"thinking", "winking", "cool", "relaxed", "delicious", "kissy", "confident", "sleepy", "silly", "confused",
}

// words are what the script says.
var words = []string{
	"talk/state-off", "talk/state-connecting", "talk/state-idle", "talk/state-listening", "talk/state-thinking", "talk/state-speaking", "talk/push", "talk/push-on", "talk/buffer", "talk/codec", "talk/frames",
	"talk/no-opus", "talk/no-pcm", "talk/codec-failed", "talk/lost", "talk/closed", "talk/end-1000", "talk/end-1001", "talk/end-1002", "talk/end-1005", "talk/end-1006", "talk/end-1008", "talk/end-1009", "talk/end-1011", "talk/end-1013", "talk/said-user", "talk/said-server", "talk/tool-remove", "talk/how-answer", "talk/how-late", "talk/how-wrong", "talk/how-bad", "talk/how-never",
}

func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = r.Host, "80"
	}
	s := state{
		Agents: p.from.Agents(access.PersonOf(r)), Agent: r.URL.Query().Get("agent"), Faces: faces, Words: words, Host: r.Host, Port: port, Ticket: TicketPath, Last: lastPath, Browser: browserOf(w, r),
		Local: (&url.URL{Scheme: "http", Host: net.JoinHostPort("localhost", port), Path: "/console/talk"}).String(),
	}
	if own := p.from.HTTPSPort(); own != "" {
		s.HTTPS = (&url.URL{Scheme: "https", Host: net.JoinHostPort(host, own), Path: "/console/talk"}).String()
	}
	p.site.Show(w, r, "talk", ui.Content{Title: p.site.Say(r, "talk/title"), Data: s})
}

// browserCookie holds what a browser calls itself: a random name that is no secret. What the browser keeps otherwise is
// taken from it at each logout, and then it would be another device each time.
const browserCookie = "browser"

const year = 365 * 24 * 60 * 60 // s

// browserOf returns the name of the browser that asks, which is given one if it has none.
func browserOf(w http.ResponseWriter, r *http.Request) string {
	id := strings.ToLower(rand.Text())
	if c, err := r.Cookie(browserCookie); err == nil && isBrowserID(c.Value) {
		id = c.Value
	}
	http.SetCookie(w, &http.Cookie{
		Name: browserCookie, Value: id, Path: "/console/talk", MaxAge: year, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
	return id
}

// deviceIn is the device that a request asks about.
func deviceIn(r *http.Request) string { return identity.ParseID(r.URL.Query().Get("device")) }

func (p *Page) last(w http.ResponseWriter, r *http.Request) {
	turn, err := p.from.LastTurn(r.Context(), deviceIn(r))
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	var picture *waterfall.Picture
	if turn != nil {
		picture = waterfall.Draw(turn, ui.Lang(r))
	}
	html, err := p.site.Fragment(r, "talk-last", picture)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	access.PageHeaders(w, r)
	_, _ = w.Write([]byte(html)) // the browser may be gone
}
