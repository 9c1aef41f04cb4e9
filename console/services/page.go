// Package services is the page of what hears, thinks and speaks: the chains, the services in them, and the forms by which
// people add, try and change them.
package services

import (
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	kit "xiaozhi/internal/services"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/service"
)

// Files are the templates of the page.
//
//go:embed *.html *.js
var Files embed.FS

// Topic is what the page follows: the chains.
const Topic = "services"

// Source lists, tries and changes services; [kit.Services] is one. Its methods may be called at the same time.
type Source interface {
	Revision() int
	Chains() []kit.Chain
	Usage(ctx context.Context) map[service.Role]map[string]kit.Usage
	Sections() []kit.Section
	Form(ctx context.Context, name, kind string) (kit.Form, bool)
	Test(ctx context.Context, by account.Person, d kit.Draft, lang text.Lang, runs int) (*kit.Report, error)
	Hold(person string, d kit.Draft) string
	Held(person, id string, d *kit.Draft) []string
	Plan(ctx context.Context, by account.Person, d kit.Draft) (*kit.Plan, error)
	Remove(ctx context.Context, by account.Person, base int, name string) (*kit.Plan, error)
	Arrange(ctx context.Context, by account.Person, base int, o kit.Order) (int, error)
	Apply(ctx context.Context, by account.Person, plan string) (int, error)
	Undo(ctx context.Context, by account.Person, n int) error
	Voices(ctx context.Context, by account.Person, name string) ([]service.Voice, bool, error)
	Sample(ctx context.Context, by account.Person, name, voice string, lang text.Lang) kit.Outcome
	Clip(person, id string) ([]byte, time.Time, bool)
}

// Page shows services.
type Page struct {
	site *ui.Site
	from Source
}

// New returns the page.
func New(site *ui.Site, from Source) *Page { return &Page{site, from} }

const path = ui.Prefix + "services"

var owners = account.Need{Role: account.Owner, Scope: account.Admin}

// Routes are those of the page.
func (p *Page) Routes() []access.Route {
	if p.from == nil { // nothing can be set
		return nil
	}
	page := func(pattern string, h http.HandlerFunc) access.Route {
		return p.site.Page(pattern, access.Route{Need: owners}, h)
	}
	return []access.Route{
		page("GET "+path, func(w http.ResponseWriter, r *http.Request) { p.list(w, r, nil) }),
		page("POST "+path, p.act),
		page("GET "+path+"/add", p.choose),
		page("GET "+path+"/add/{kind}", p.show),
		page("POST "+path+"/add/{kind}", p.change),
		page("GET "+setupPath+"/{kind}", p.show),
		page("POST "+setupPath+"/{kind}", p.change),
		page("GET "+path+"/sound/{id}", p.sound),
		page("GET "+path+"/of/{name}", p.show),
		page("POST "+path+"/of/{name}", p.change),
		page("GET "+path+"/of/{name}/voices", p.voices),
		page("POST "+path+"/of/{name}/voices", p.voices),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	if p.from == nil {
		return nil
	}
	return []live.Topic{live.Whole(Topic, owners, "chains", func(r *http.Request) (string, error) {
		s, err := p.state(r)
		if err != nil {
			return "", err
		}
		return p.site.Fragment(r, "services-chains", s)
	})}
}

// state fills the list.
type state struct {
	Base   int
	Chains []chain              // of all
	Own    []chain              // of agents
	Idle   ui.Rows[kit.Section] // that are in no chain
	Undo   int                  // revision that was just made; 0: none
}

// chain is one with its members.
type chain struct {
	kit.Chain
	Members []member
	Label   string // of agents: whose it is
}

// member is one with what people read.
type member struct {
	kit.Member
	Place       int // from 1
	First, Last bool
	Kind        string // of its state, as the frame draws it
	Path        string
	Until       time.Time // it is tried again
	Why, Raw    string
	Past        bool // it works all the same: that was then
	Used        kit.Usage
}

var kinds = map[kit.Condition]string{kit.Ready: "ok", kit.Resting: "bad", kit.Trying: "warn", kit.LeftOut: "idle"}

// state fills the page. The error is of the place that an address names in the list of what is in no chain.
func (p *Page) state(r *http.Request) (state, error) {
	s := state{Base: p.from.Revision()}
	s.Undo, _ = strconv.Atoi(r.URL.Query().Get("undo")) // of what is no number: none
	lang, now, used := ui.Lang(r), time.Now(), p.from.Usage(r.Context())
	for _, c := range p.from.Chains() {
		one := chain{Chain: c, Label: strings.Join(c.Agents, ", ")}
		for i, m := range c.Members {
			shown := member{Member: m, Place: i + 1, First: i == 0, Last: i == len(c.Members)-1, Kind: kinds[m.Condition], Path: pathOf(m.Name)}
			if m.Condition == kit.Resting {
				shown.Until = now.Add(m.Rest).Round(time.Second)
			}
			if m.Fault != nil {
				shown.Why, shown.Raw, shown.Past = m.Fault.In(lang), m.Fault.Raw(), past(m.Condition)
			}
			shown.About, shown.Used = aboutOf(m.About, lang), used[c.Role][m.Name]
			one.Members = append(one.Members, shown)
		}
		switch {
		case len(c.Agents) > 0:
			s.Own = append(s.Own, one)
		case len(c.Members) > 0 || !slices.Contains([]service.Role{service.Vision, service.Realtime, service.Embed}, c.Role) || len(c.More) > 0 && c.Role != service.Vision:
			s.Chains = append(s.Chains, one)
		}
	}
	var err error
	s.Idle, err = ui.List[kit.Section]{
		Path: path, Name: "idle",
		Key: func(one kit.Section) string { return one.Name },
		Text: func(one kit.Section) string {
			return one.Name + " " + one.Type + " " + one.Called(lang) + " " + one.Place
		},
	}.Page(r, slices.DeleteFunc(p.from.Sections(), func(one kit.Section) bool { return len(one.Used) > 0 }), nil)
	return s, err
}

// aboutOf returns the line that the log has of a service, in one language. The English "at" between a model and its address
// becomes a dot.
func aboutOf(both string, lang text.Lang) string {
	return text.Sentence(strings.Replace(message.Part(both, lang), " at ", " · ", 1))
}

// past reports whether the last failure of a member is over: it is asked as if there were none.
func past(c kit.Condition) bool { return c == kit.Ready }

func pathOf(name string) string { return path + "/of/" + url.PathEscape(name) }

func (p *Page) list(w http.ResponseWriter, r *http.Request, f *ui.Form) {
	s, err := p.state(r)
	c := ui.Content{Title: p.site.Say(r, "frame/nav-services"), Data: s, Form: f}
	if err != nil {
		p.site.Failed(w, r, "services", c, err)
		return
	}
	p.site.Show(w, r, "services", c)
}

// act changes the order of a chain, or takes a change back.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	by, base := access.PersonOf(r), number(f.Get("base"))
	var err error
	switch do := f.Get("do"); do {
	case "apply":
		p.apply(w, r, f)
		return
	case "undo":
		if err = p.from.Undo(r.Context(), by, number(f.Get("revision"))); err == nil {
			p.site.Done(w, r, path, "services/undone")
			return
		}
	default:
		var n int
		n, err = p.from.Arrange(r.Context(), by, base, kit.Order{Role: service.Role(f.Get("role")), Name: f.Get("name"), Do: kit.Do(do), At: number(f.Get("at"))})
		if err == nil {
			p.site.Done(w, r, path+"?undo="+strconv.Itoa(n), "services/arranged")
			return
		}
	}
	if p.explain(w, r, f, err) {
		p.list(w, r, f)
	}
}

// apply puts a plan in force that somebody has seen.
func (p *Page) apply(w http.ResponseWriter, r *http.Request, f *ui.Form) {
	n, err := p.from.Apply(r.Context(), access.PersonOf(r), f.Get("plan"))
	switch {
	case err == nil && f.Get("back") == "setup":
		p.site.Done(w, r, setupPath, "services/applied")
		return
	case err == nil:
		p.site.Done(w, r, path+"?undo="+strconv.Itoa(n), "services/applied")
		return
	}
	if p.explain(w, r, f, err) {
		p.list(w, r, f)
	}
}

func number(typed string) int {
	n, err := strconv.Atoi(typed)
	if err != nil {
		return 0
	}
	return n
}

// group is one of the kinds to choose from.
type group struct {
	Name  kit.Group
	Own   bool // a service with the wire of OpenAI is among them, wherever it is
	Kinds []kit.Kind
}

// choose lists the kinds of services that can be added.
func (p *Page) choose(w http.ResponseWriter, r *http.Request) {
	search := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	var all []group
	for _, name := range kit.Groups() {
		g := group{Name: name, Own: name == kit.Cloud && (search == "" || strings.Contains(strings.ToLower(p.site.Say(r, "services/own-title")), search))}
		for _, k := range kit.Addable(ui.Lang(r)) {
			if k.Group == name && strings.Contains(strings.ToLower(k.Type+" "+k.Title+" "+k.Called(text.Chinese)), search) {
				g.Kinds = append(g.Kinds, k)
			}
		}
		if len(g.Kinds) > 0 || g.Own {
			all = append(all, g)
		}
	}
	p.site.Show(w, r, "services-add", ui.Content{Title: p.site.Say(r, "services/add"), Data: map[string]any{"Groups": all, "Search": search}})
}

// sound plays what a test has made.
func (p *Page) sound(w http.ResponseWriter, r *http.Request) {
	data, made, ok := p.from.Clip(access.PersonOf(r).ID, r.PathValue("id"))
	if !ok {
		p.site.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "audio/wav")
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", made, strings.NewReader(string(data)))
}

// sample is a voice in the list, with its sound where it was asked for.
type sample struct {
	service.Voice
	Heard *kit.Outcome
	Why   string
}

const voicesShown = 50

// voices lists the voices of a service, and has one of them speak.
func (p *Page) voices(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	form, there := p.from.Form(r.Context(), name, "")
	if !there {
		p.site.NotFound(w, r)
		return
	}
	f, chosen := &ui.Form{}, ""
	if r.Method == http.MethodPost {
		var ok bool
		if f, ok = p.site.Form(w, r); !ok {
			return
		}
		chosen = f.Raw("voice")
	}
	search := strings.TrimSpace(r.URL.Query().Get("q"))
	all, asked, err := p.from.Voices(r.Context(), access.PersonOf(r), name)
	if err != nil && !p.explain(w, r, f, err) {
		return
	}
	found := slices.DeleteFunc(slices.Clone(all), func(v service.Voice) bool {
		return !strings.Contains(strings.ToLower(v.Name+" "+v.Title+" "+strings.Join(v.Language, " ")), strings.ToLower(search))
	})
	from := 0
	if after := r.URL.Query().Get("after"); after != "" {
		if from = slices.IndexFunc(found, func(v service.Voice) bool { return v.Name == after }) + 1; from == 0 {
			p.site.Refused(w, r, account.ErrPageBad)
			return
		}
	}
	v := map[string]any{"Name": name, "Path": pathOf(name), "Kind": form.Kind, "Asked": asked, "Search": search, "Total": len(all), "Found": len(found), "Older": "", "Here": r.URL.RequestURI()}
	if from+voicesShown < len(found) {
		v["Older"] = pathOf(name) + "/voices?" + url.Values{"q": {search}, "after": {found[from+voicesShown-1].Name}}.Encode()
	}
	var shown []sample
	for _, one := range found[from:min(from+voicesShown, len(found))] {
		s := sample{Voice: one}
		if chosen != "" && one.Name == chosen {
			out := p.from.Sample(r.Context(), access.PersonOf(r), name, chosen, ui.Lang(r))
			if s.Heard = &out; out.Fault != nil {
				s.Why = out.Fault.In(ui.Lang(r))
			}
		}
		shown = append(shown, s)
	}
	v["Voices"] = shown
	p.site.Show(w, r, "services-voices", ui.Content{Title: p.site.Say(r, "services/voices-of", name), Data: v, Form: f})
}
