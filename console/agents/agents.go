// Package agents is the pages of agents: all of them, the editor of one, what it was before, and a gallery to begin with.
package agents

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
)

// Files are the templates of the pages, their style and their script.
//
//go:embed *.html *.css *.js
var Files embed.FS

// Topics of the pages. That of one agent has its name as key.
const (
	AllTopic = "agents"
	OneTopic = "agent"
)

// Book keeps agents, as far as the one who asks may know of them: a [roster.API].
type Book interface {
	All(r *http.Request) []roster.Agent
	One(r *http.Request, name string) (roster.Agent, error)
	Past(r *http.Request, name string) ([]roster.Agent, error)
	OwnerOf(ctx context.Context, name string) (string, error)
	Save(r *http.Request, name string, base int, doc []byte, note string, fresh bool) error
	Restore(r *http.Request, name string, rev int) error
	Delete(r *http.Request, name string) error
}

// Lab tries what is not saved: a [lab.Lab].
type Lab interface {
	Prompt(ctx context.Context, order lab.PromptOrder) (lab.Prompt, error)
	Voices(person, sentence string, all []lab.Voice) (*lab.Run, error)
}

// Stock tells what agents can be made of.
type Stock interface {
	Prompts() []string                    // names of those that there are
	PromptText(name, lang string) string  // as it is written
	Languages() []string                  // tags of those that the program speaks
	Roles() []Role                        // chains, in their order
	Voices() []Voice                      // that are known
	Tools(r *http.Request) []Tool         // that are offered here, or on a device of who asks
	Devices(r *http.Request) []Device     // of who asks
	Check(name string, doc []byte) []Flaw // what is wrong with settings
}

// Role names services that do the same in a chain.
type Role struct {
	Key   string   // of the settings of agents
	All   []string // services of those who have no own chain
	Names []string // services that can be named
}

// Voice is one that is known of a service.
type Voice struct{ Name, Title, Service string }

// Tool is one that agents can be given.
type Tool struct{ Name, Source, About string }

// Device is one with which an agent is tried.
type Device struct{ ID, Name string }

// Label shortens the name of the device, or its id, for where there is little room.
func (d Device) Label() string {
	const room = 26 // letters; a Chinese sign takes that of two
	name, used := cmp.Or(d.Name, d.ID), 0
	for i, c := range name {
		if used++; c >= 0x1100 {
			used++
		}
		if used > room {
			return name[:i] + "…"
		}
	}
	return name
}

// Flaw says what is wrong with a setting, by its key.
type Flaw struct {
	Key string
	In  map[text.Lang]string
}

// Options say what the pages use. Lab may be nil.
type Options struct {
	Book  Book
	Lab   Lab
	Stock Stock
}

// Page shows agents.
type Page struct {
	site *ui.Site
	o    Options
}

// New returns the pages.
func New(site *ui.Site, o Options) *Page { return &Page{site, o} }

const (
	path    = ui.Prefix + "agents"
	newPath = path + "/-/new" // no agent has a slash in its name
)

var (
	member = account.Need{Role: account.Member, Scope: account.Admin}
	own    = account.Need{Role: account.Member, Scope: account.Admin, Own: true}
)

// Routes are those of the pages.
func (p *Page) Routes() []access.Route {
	owner := func(r *http.Request) (string, error) { return p.o.Book.OwnerOf(r.Context(), r.PathValue("name")) }
	return []access.Route{
		p.site.Page("GET "+path, access.Route{Need: member}, p.list),
		p.site.Page("GET "+newPath, access.Route{Need: member}, p.begin),
		p.site.Page("POST "+newPath, access.Route{Need: member}, p.make),
		p.site.Page("GET "+path+"/{name}", access.Route{Need: member}, p.one),
		p.site.Page("POST "+path+"/{name}", access.Route{Need: own, Owner: owner}, p.change),
		p.site.Page("GET "+path+"/{name}/{rev}", access.Route{Need: member}, p.revision),
		p.site.Page("POST "+path+"/{name}/{rev}", access.Route{Need: own, Owner: owner}, p.restore),
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{
		{Name: AllTopic, Need: member, Parts: func(r *http.Request, _ string) ([]live.Part, error) {
			l, err := p.listing(r)
			if err != nil {
				return nil, err
			}
			html, err := p.site.Fragment(r, "agents-cards", l)
			return []live.Part{{ID: "agents", HTML: html}}, err
		}},
		{Name: OneTopic, Need: member, Parts: func(r *http.Request, name string) ([]live.Part, error) {
			agent, err := p.o.Book.One(r, name)
			if err != nil {
				return nil, err
			}
			agent.Trouble = p.trouble(r, agent)
			html, err := p.site.Fragment(r, "agent-head", &editor{Agent: agent, Here: here(name)})
			return []live.Part{{ID: "agent-head", HTML: html}}, err
		}},
	}
}

// here is the path of an agent.
func here(name string) string { return path + "/" + url.PathEscape(name) }

// listing is the page of all agents.
type listing struct {
	ui.Rows[roster.Agent]

	Cards []card // of those
	Undo  *undo
}

// card is an agent in the list.
type card struct {
	roster.Agent

	Path   string
	Begin  string // of its prompt
	Set    settings
	Mine   bool // who looks may change it
	Others bool // it is a member's, and an owner looks
}

// undo offers to bring back what was deleted.
type undo struct {
	Name, Path string
	Rev        int
}

// mayChange reports whether a person may change an agent.
func mayChange(p account.Person, a roster.Agent) bool {
	return a.From != "settings" && (p.Is(account.Owner) || a.Owner != "" && a.Owner == p.ID)
}

// listing takes the agents that an address asks for. The error is of the place in the list.
func (p *Page) listing(r *http.Request) (*listing, error) {
	who := access.PersonOf(r)
	found, err := ui.List[roster.Agent]{
		Path: path,
		Key:  func(a roster.Agent) string { return a.Name },
		Text: func(a roster.Agent) string {
			set := read(a.Settings)
			return a.Name + "\n" + set.Text + "\n" + set.Voice
		},
	}.Page(r, p.o.Book.All(r), nil)
	l := &listing{Rows: found}
	for _, a := range found.Rows {
		set := read(a.Settings)
		a.Trouble = p.trouble(r, a)
		l.Cards = append(l.Cards, card{
			Agent: a, Path: here(a.Name), Begin: beginning(cmp.Or(set.Text, p.o.Stock.PromptText(cmp.Or(set.Prompt, a.Name), string(ui.Lang(r))))), Set: set, Mine: mayChange(who, a), Others: a.Owner != "" && a.Owner != who.ID,
		})
	}
	return l, err
}

// trouble says in the language of the page why an agent is not used.
func (p *Page) trouble(r *http.Request, a roster.Agent) string {
	var all []string
	if a.Trouble != "" {
		for _, flaw := range p.o.Stock.Check(a.Name, a.Settings) {
			all = append(all, cmp.Or(flaw.In[ui.Lang(r)], flaw.In[text.English]))
		}
	}
	return cmp.Or(strings.Join(all, "; "), a.Trouble)
}

// beginning is the first line of a prompt.
func beginning(typed string) string {
	const most = 140
	first, _, _ := strings.Cut(strings.TrimSpace(typed), "\n")
	if runes := []rune(first); len(runes) > most {
		first = string(runes[:most]) + "…"
	}
	return first
}

func (p *Page) list(w http.ResponseWriter, r *http.Request) {
	l, err := p.listing(r)
	c := ui.Content{Title: p.site.Say(r, "agents/title"), Data: l}
	if err != nil {
		p.site.Failed(w, r, "agents", c, err)
		return
	}
	if gone := r.URL.Query().Get("undo"); gone != "" {
		l.Undo = p.undo(r, gone)
	}
	p.site.Show(w, r, "agents", c)
}

// undo tells how a deleted agent comes back; nil: it is there, or who asks may not bring it back.
func (p *Page) undo(r *http.Request, name string) *undo {
	if a, err := p.o.Book.One(r, name); err == nil && a.From == "store" {
		return nil
	}
	past, err := p.o.Book.Past(r, name)
	if err != nil || len(past) == 0 || !mayChange(access.PersonOf(r), past[0]) {
		return nil
	}
	return &undo{name, here(name), past[0].Rev}
}

// fail answers for what cannot be shown.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	if p.site.Reason(r, err) != "" && !errors.Is(err, account.ErrPageBad) {
		p.site.NotFound(w, r)
		return
	}
	p.site.Refused(w, r, err)
}

// begin shows the gallery, or the editor with what was chosen of it.
func (p *Page) begin(w http.ResponseWriter, r *http.Request) {
	v, lang := r.URL.Query(), ui.Lang(r)
	if copied := v.Get("copy"); copied != "" {
		a, err := p.o.Book.One(r, copied)
		if err != nil {
			p.fail(w, r, err)
			return
		}
		p.edit(w, r, &editor{New: true}, p.filled(r, read(a.Settings), "name", p.site.Say(r, "agents/copy-of", copied)))
		return
	}
	all := gallery(lang, p.o.Stock.PromptText)
	id := v.Get("template")
	if i := slices.IndexFunc(all, func(t template) bool { return t.ID == id }); i >= 0 || id == "empty" {
		set, name := settings{Tools: &rules{}, Text: p.o.Stock.PromptText("default", string(lang))}, ""
		if i >= 0 {
			set.Text, name = all[i].Text, all[i].Title
		}
		p.edit(w, r, &editor{New: true}, p.filled(r, set, "name", name))
		return
	}
	p.site.Show(w, r, "agents-new", ui.Content{Title: p.site.Say(r, "agents/new"), Data: all})
}

// filled is a form with settings, and with further pairs of field and value.
func (p *Page) filled(r *http.Request, s settings, pairs ...string) *ui.Form {
	if s.Tools == nil {
		s.Tools = &rules{}
	}
	var names []string
	for _, t := range p.o.Stock.Tools(r) {
		names = append(names, t.Name)
	}
	return ui.Filled(append(s.form(names), pairs...)...)
}
