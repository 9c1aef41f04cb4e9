package agents

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/roster"
)

// past is the page of a revision of an agent.
type past struct {
	Agent  roster.Agent // as it is now; its Rev is 0 where it was deleted
	This   roster.Agent
	Before int // the revision before this one; 0: it is the first that is kept
	Since  []change
	Now    []change // what differs from now
	Gone   bool
	Mine   bool
	Here   string
}

// versions takes those of an agent that an address asks for.
func versions(r *http.Request, e *editor) (ui.Rows[roster.Agent], error) {
	return ui.List[roster.Agent]{
		Path: e.Here, Name: "past", Newest: true,
		Key: func(a roster.Agent) string {
			return access.Before(cmp.Or(a.At, &time.Time{}).UTC(), strconv.Itoa(a.Rev))
		},
		Text: func(a roster.Agent) string { return strconv.Itoa(a.Rev) + " " + a.By + " " + a.Note },
	}.Page(r, e.Past, nil)
}

// found returns the revision that a request names, and all others.
func (p *Page) found(r *http.Request) (all []roster.Agent, at int, err error) {
	all, err = p.o.Book.Past(r, r.PathValue("name"))
	rev, wrong := strconv.Atoi(r.PathValue("rev"))
	at = slices.IndexFunc(all, func(a roster.Agent) bool { return wrong == nil && a.Rev == rev })
	return all, at, err
}

func (p *Page) revision(w http.ResponseWriter, r *http.Request) {
	all, at, err := p.found(r)
	if err != nil || at < 0 {
		p.missing(w, r, err)
		return
	}
	name := r.PathValue("name")
	d := past{This: all[at], Mine: mayChange(access.PersonOf(r), all[0]), Here: here(name)}
	before := []byte("{}")
	if at+1 < len(all) {
		before, d.Before = all[at+1].Settings, all[at+1].Rev
	}
	d.Since = compare(before, d.This.Settings)
	if d.Agent, err = p.o.Book.One(r, name); err != nil || d.Agent.From != "store" {
		d.Gone = true
		d.Agent.Name = name
	} else {
		d.Now = compare(d.This.Settings, d.Agent.Settings)
	}
	d.Mine = d.Mine && d.Agent.From != "settings"
	p.site.Show(w, r, "agent-revision", ui.Content{Title: p.site.Say(r, "agents/revision-of", name, d.This.Rev), Data: d})
}

// missing answers for a revision that is not there, or for a failure.
func (p *Page) missing(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		p.site.NotFound(w, r)
		return
	}
	p.fail(w, r, err)
}

func (p *Page) restore(w http.ResponseWriter, r *http.Request) {
	if _, ok := p.site.Form(w, r); !ok {
		return
	}
	all, at, err := p.found(r)
	if err != nil || at < 0 {
		p.missing(w, r, err)
		return
	}
	name := r.PathValue("name")
	if err := p.o.Book.Restore(r, name, all[at].Rev); err != nil {
		f := &ui.Form{}
		if l, bad := p.listing(r); bad == nil && p.site.Explain(w, r, f, "", err) {
			p.site.Show(w, r, "agents", ui.Content{Title: p.site.Say(r, "agents/title"), Data: l, Form: f})
		}
		return
	}
	p.site.Done(w, r, here(name), "agents/restored", strconv.Itoa(all[at].Rev))
}
