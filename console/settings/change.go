package settings

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
)

// editor is the page of a group.
type editor struct {
	State   state
	Name    string
	Rows    []row // of the form
	Fixed   []row // that are only shown: they stand in files, or nothing of the group can be changed here
	Secrets bool  // can be typed into it
	Stale   *stale
}

func (p *Page) group(w http.ResponseWriter, r *http.Request) {
	keys, ok := p.keysOf(r.PathValue("group"))
	if !ok {
		p.site.NotFound(w, r)
		return
	}
	f := filled(ui.Filled("base", strconv.Itoa(p.from.Revision())), keys)
	if plan, err := p.from.Planned(access.PersonOf(r), r.URL.Query().Get("plan")); err == nil { // somebody comes back from it
		f.Set("base", strconv.Itoa(plan.Base))
		for _, c := range plan.Changes {
			if !c.Secret && c.New != nil {
				f.Set(typedPrefix+c.Key(), written(config.ShapeOf(c.Path), c.New))
			}
		}
	}
	p.edit(w, r, f, keys, nil)
}

func (p *Page) edit(w http.ResponseWriter, r *http.Request, f *ui.Form, keys []settings.Key, other *stale) {
	e := editor{State: p.state(r), Name: r.PathValue("group"), Stale: other}
	form := slices.ContainsFunc(keys, func(k settings.Key) bool { return !rowOf(k, ui.Lang(r)).Locked })
	for _, k := range keys {
		one := rowOf(k, ui.Lang(r))
		if !form || !k.Changeable {
			e.Fixed = append(e.Fixed, one)
			continue
		}
		e.Rows = append(e.Rows, one)
		e.Secrets = e.Secrets || k.Secret && !one.Locked
	}
	p.site.Show(w, r, "settings-group", ui.Content{Title: p.site.Say(r, words+"group-"+e.Name), Data: e, Form: f})
}

// plan checks what somebody has typed. What was typed is kept if it is refused.
func (p *Page) plan(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	keys, ok := p.keysOf(r.PathValue("group"))
	if !ok {
		p.site.NotFound(w, r)
		return
	}
	if r = p.site.Again(w, r, f); !f.Valid() {
		p.edit(w, r, f, keys, nil)
		return
	}
	base, _ := strconv.Atoi(f.Get("base")) // of what is none: nothing was set then
	typed := edits(f, keys)
	plan, err := p.from.Plan(r.Context(), access.PersonOf(r), base, typed)
	if err == nil {
		ui.Redirect(w, r, path+"/-/plan/"+plan.ID)
		return
	}
	if other := staleOf(err); other != nil {
		p.overtaken(f, typed, other)
		f.Wrong("", settings.Explain(ui.Lang(r), err))
		p.edit(w, r, f, keys, other)
		return
	}
	if !p.refused(r, f, keys, err) {
		p.site.Refused(w, r, err)
		return
	}
	p.edit(w, r, f, keys, nil)
}

// overtaken makes a form one of what holds now, with what was typed into it.
func (p *Page) overtaken(f *ui.Form, typed []settings.Edit, other *stale) {
	mine := map[string]string{}
	for _, e := range typed {
		name := config.Change{Path: e.Path}.Key()
		mine[name] = f.Get(typedPrefix + name)
	}
	keys, _ := p.keysOf(groupOf(typed[0].Path)) // as they are now
	filled(f, keys)
	for name, typed := range mine {
		f.Set(typedPrefix+name, typed)
	}
	f.Set("base", strconv.Itoa(other.Now))
}

// preview is the page of a change that is not in force.
type preview struct {
	*settings.Plan

	Changes []change
	State   state
	Back    string
	To      string // query that names the page to which it leads; "": that of all settings
	Left    []left
	Stale   *stale
}

// left is a key that was not taken from a document.
type left struct{ Key, Why string }

func (p *Page) planned(w http.ResponseWriter, r *http.Request) {
	plan, err := p.from.Planned(access.PersonOf(r), r.PathValue("id"))
	if err != nil {
		p.gone(w, r, err)
		return
	}
	p.preview(w, r, plan, nil, nil)
}

// gone answers for a plan that waits no more.
func (p *Page) gone(w http.ResponseWriter, r *http.Request, err error) {
	f := &ui.Form{}
	if p.site.Explain(w, r, f, "", err) {
		p.site.Show(w, r, "settings-gone", ui.Content{Title: p.site.Say(r, "settings/title"), Data: p.state(r), Form: f})
	}
}

func (p *Page) preview(w http.ResponseWriter, r *http.Request, plan *settings.Plan, f *ui.Form, other *stale) {
	v := preview{Plan: plan, Changes: changesOf(plan.Changes), State: p.state(r), Back: back(plan.Changes), Stale: other}
	if to := onward(r); to != "" {
		v.To, v.Back = "?"+url.Values{"to": {to}}.Encode(), to
	} else {
		v.Back += "?plan=" + plan.ID
	}
	for _, l := range plan.Left {
		v.Left = append(v.Left, left{config.Change{Path: l.Path}.Key(), settings.Explain(ui.Lang(r), l.Why)})
	}
	p.site.Show(w, r, "settings-plan", ui.Content{Title: p.site.Say(r, "settings/plan"), Data: v, Form: f})
}

// onward is the page from which a plan was made, where it is not one of the settings; "": it is.
func onward(r *http.Request) string {
	if to := r.URL.Query().Get("to"); ui.Inside(to) {
		return to
	}
	return ""
}

// decide applies a plan, throws it away, or makes it again of what others have set.
func (p *Page) decide(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	who, id := access.PersonOf(r), r.PathValue("id")
	plan, err := p.from.Planned(who, id)
	if err != nil {
		p.gone(w, r, err)
		return
	}
	switch f.Get("do") {
	case "apply":
		var done settings.Revision
		if done, err = p.from.Apply(r.Context(), who, id); err == nil {
			p.site.Done(w, r, cmp.Or(onward(r), path), "settings/applied", strconv.Itoa(done.N))
			return
		}
	case "again":
		var again *settings.Plan
		if again, err = p.from.Again(r.Context(), who, id); err == nil {
			ui.Redirect(w, r, path+"/-/plan/"+again.ID+"?"+r.URL.RawQuery)
			return
		}
	default:
		_ = p.from.Drop(who, id) // it is gone anyway
		p.site.Done(w, r, cmp.Or(onward(r), back(plan.Changes)), "settings/dropped")
		return
	}
	if !p.refused(r, f, nil, err) {
		p.site.Refused(w, r, err)
		return
	}
	p.preview(w, r, plan, f, staleOf(err))
}

// undo takes a revision back.
func (p *Page) undo(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	n, _ := strconv.Atoi(f.Get("revision")) // of what is none: there is no such one
	done, err := p.from.Undo(r.Context(), access.PersonOf(r), n)
	if err == nil {
		p.site.Done(w, r, path+"/-/revisions", "settings/undone", strconv.Itoa(n), strconv.Itoa(done.N))
		return
	}
	if !p.refused(r, f, nil, err) {
		p.site.Refused(w, r, err)
		return
	}
	p.list(w, r, f, staleOf(err), n)
}

func (p *Page) importing(w http.ResponseWriter, r *http.Request, f *ui.Form) {
	if f == nil {
		f = ui.Filled("base", strconv.Itoa(p.from.Revision()))
	}
	p.site.Show(w, r, "settings-import", ui.Content{Title: p.site.Say(r, "settings/import"), Data: p.state(r), Form: f})
}

// imports checks what a document sets.
func (p *Page) imports(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	if r = p.site.Again(w, r, f); !f.Valid() {
		p.importing(w, r, f)
		return
	}
	base, _ := strconv.Atoi(f.Get("base")) // of what is none: nothing was set then
	plan, err := p.from.Import(r.Context(), access.PersonOf(r), base, []byte(f.Raw("long-document")))
	if err == nil {
		ui.Redirect(w, r, path+"/-/plan/"+plan.ID)
		return
	}
	if !p.refused(r, f, nil, err) {
		p.site.Refused(w, r, err)
		return
	}
	p.importing(w, r, f)
}
