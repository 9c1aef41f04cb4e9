package services

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	kit "xiaozhi/internal/services"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/service"
)

// set begins the names of the fields of a section, so that none is that of another field of the form.
const set = "set."

// editor fills the form of a service.
type editor struct {
	kit.Form
	Path    string
	Top     []kit.Field // shown at once
	More    []kit.Field
	Open    bool // a mistake is among More
	Draft   string
	Typed   map[string]bool // secrets that were typed, and are held
	Report  *report
	Plan    *kit.Plan
	Joins   []service.Role
	Speaks  bool
	Removes bool
	Own     bool   // at an address of one's own
	Setup   bool   // a step of the setup of a new server
	Steps   []step // of that
}

// step is one of the setup, in its bar.
type step struct {
	Name       string
	Here, Done bool
}

// steps are those of the setup, of which this page is a part.
var steps = []step{{Name: "owner", Done: true}, {Name: "services", Here: true}, {Name: "speakers"}, {Name: "address"}}

const setupPath = ui.Prefix + "setup/services"

// report holds what came of a test, as people read it.
type report struct {
	*kit.Report
	Outcomes []outcome
}

type outcome struct {
	kit.Outcome
	Why, Raw string
}

func (p *Page) editor(r *http.Request) (e editor, ok bool) {
	name, kind := r.PathValue("name"), r.PathValue("kind")
	e.Form, ok = p.from.Form(r.Context(), name, kind)
	if !ok {
		return e, false
	}
	e.Typed = map[string]bool{}
	if e.Path = path + "/add/" + kind; kind == "" {
		e.Path = pathOf(name)
	}
	e.Own = r.URL.Query().Get("own") != ""
	if e.Setup = strings.HasPrefix(r.URL.Path, setupPath); e.Setup {
		e.Path, e.Steps = setupPath+"/"+kind, steps
	}
	if e.Own {
		e.Path += "?own=1"
	}
	for _, f := range e.Fields {
		switch {
		case e.Own && f.Key == "base_url":
			f.Needed, f.Usual = true, ""
			e.Top = append([]kit.Field{f}, e.Top...)
		case e.Own && (f.Key == "api_key" || f.Key == "model"): // only its owner knows
			f.Needed, f.Usual, f.Values = f.Key == "model", "", nil
			e.Top = append(e.Top, f)
		case f.First:
			e.Top = append(e.Top, f)
		default:
			e.More = append(e.More, f)
		}
	}
	e.Removes = !e.New && e.Place == ""
	for _, role := range e.Kind.Does {
		e.Speaks = e.Speaks || role == service.TTS
	}
	if e.New && len(e.Used) == 0 {
		e.Joins = e.Chains
	} else {
		e.Shut = nil
	}
	return e, true
}

// show shows the form of a service.
func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	e, ok := p.editor(r)
	if !ok {
		p.site.NotFound(w, r)
		return
	}
	pairs := []string{"name", e.Name}
	for _, f := range e.Fields {
		pairs = append(pairs, set+f.Key, f.Value)
	}
	for _, role := range e.Joins {
		if role == service.Embed { // what is remembered goes nowhere unless somebody says so
			continue
		}
		if !e.Own || role == service.LLM { // few others do more
			pairs = append(pairs, "join", string(role))
		}
	}
	p.form(w, r, e, ui.Filled(pairs...))
}

func (p *Page) form(w http.ResponseWriter, r *http.Request, e editor, f *ui.Form) {
	for _, field := range e.More {
		e.Open = e.Open || f.Mistake(set+field.Key) != "" || r.Method == http.MethodPost && field.Pinned == "" && f.Get(set+field.Key) != field.Value
	}
	e.Base = p.from.Revision()
	title, page := p.site.Say(r, "services/add-one", e.Kind.Called(ui.Lang(r))), "services-edit"
	if e.Own {
		title = p.site.Say(r, "services/add-own")
	}
	if !e.New || len(e.Used) > 0 {
		title = e.Name
	}
	if e.Setup {
		page = "services-setup"
	}
	p.site.Show(w, r, page, ui.Content{Title: title, Data: e, Form: f})
}

// change tries, saves or removes a service, as its form says.
func (p *Page) change(w http.ResponseWriter, r *http.Request) {
	e, ok := p.editor(r)
	if !ok {
		p.site.NotFound(w, r)
		return
	}
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	by := access.PersonOf(r)
	d := draftOf(e, f)
	held := p.from.Held(by.ID, f.Get("draft"), &d)
	for _, key := range held {
		e.Typed[key] = true
	}
	for _, field := range e.Fields {
		if field.Input == kit.Secret && d.Typed[field.Key] != "" {
			e.Typed[field.Key] = true
		}
	}
	if f.Get("draft") != "" && len(held) == 0 && len(e.Typed) == 0 { // what was held is not for this address, or was dropped
		at := slices.IndexFunc(e.Fields, func(field kit.Field) bool { return field.Input == kit.Secret && field.Pinned == "" })
		if at >= 0 {
			f.Wrong(set+e.Fields[at].Key, p.site.Say(r, "services/dropped"))
		}
	}
	e.Draft = p.from.Hold(by.ID, d)
	r = p.site.Again(w, r, f)
	by = access.PersonOf(r)
	var err error
	switch {
	case !f.Valid():
	case f.Get("do") == "remove":
		e.Plan, err = p.from.Remove(r.Context(), by, d.Base, e.Name)
	case f.Get("do") == "test", f.Get("do") == "measure":
		var made *kit.Report
		if made, err = p.from.Test(r.Context(), by, d, ui.Lang(r), map[string]int{"test": 1, "measure": 5}[f.Get("do")]); err == nil {
			e.Report = reportOf(made, ui.Lang(r))
		}
	default:
		if e.Plan, err = p.from.Plan(r.Context(), by, d); err == nil && e.Setup && e.Plan.OK() {
			if _, err = p.from.Apply(r.Context(), by, e.Plan.ID); err == nil {
				p.site.Done(w, r, setupPath, "setup/added", e.Kind.Called(ui.Lang(r)))
				return
			}
		}
	}
	if e.Plan != nil {
		e.Plan.Translate(ui.Lang(r))
	}
	if err == nil || p.explain(w, r, f, err) {
		p.form(w, r, e, f)
	}
}

// draftOf takes what was typed.
func draftOf(e editor, f *ui.Form) kit.Draft {
	d := kit.Draft{Name: e.Name, Type: e.Kind.Type, New: e.New && !strings.HasPrefix(e.Path, path+"/of/"), Base: number(f.Get("base")), Typed: map[string]string{}}
	if d.New {
		if typed := f.Get("name"); typed != "" || !e.Setup {
			d.Name = typed
		}
	}
	for _, field := range e.Fields {
		if field.Pinned == "" {
			d.Typed[field.Key] = f.Get(set + field.Key)
		}
		if f.Has("clear", field.Key) {
			d.Clear = append(d.Clear, field.Key)
		}
	}
	for _, role := range e.Joins {
		if f.Has("join", string(role)) {
			d.Join = append(d.Join, role)
		}
	}
	if d.Try = d.Join; len(e.Used) > 0 {
		d.Try = e.Used
	}
	return d
}

func reportOf(made *kit.Report, lang text.Lang) *report {
	r := &report{Report: made}
	for _, o := range made.Outcomes {
		one := outcome{Outcome: o}
		if o.Fault != nil {
			one.Why, one.Raw = o.Fault.In(lang), o.Fault.Raw()
		}
		r.Outcomes = append(r.Outcomes, one)
	}
	return r
}

// explain notes at the fields why something was not done. Not ok: it has been answered.
func (p *Page) explain(w http.ResponseWriter, r *http.Request, f *ui.Form, err error) (ok bool) {
	lang := ui.Lang(r)
	if p.site.AsksAgain(r, f, err) {
		return true
	}
	if wrong, ok := errors.AsType[*kit.MistakesError](err); ok {
		for _, m := range wrong.All {
			field := m.Field
			if field != "" && field != "name" {
				field = set + field
			}
			f.Wrong(field, m.In(lang))
		}
		return true
	}
	if failed, ok := errors.AsType[*kit.FaultError](err); ok {
		f.Wrong("", failed.In(lang))
		return true
	}
	if stale, ok := errors.AsType[*settings.StaleError](err); ok {
		f.Wrong("", p.site.Say(r, "services/stale", stale.By))
		for _, c := range stale.Others {
			f.Wrong("", p.site.Say(r, "services/stale-key", c.Key(), kit.Written(c.New)))
		}
		return true
	}
	switch {
	case errors.Is(err, kit.ErrBusy), errors.Is(err, kit.ErrTwo), errors.Is(err, kit.ErrLast):
		f.Wrong("", message.Part(err.Error(), lang))
		return true
	}
	if words := settings.Explain(lang, err); words != "" {
		f.Wrong("", words)
		return true
	}
	return p.site.Explain(w, r, f, "", err)
}
