package tools

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// Settings change how tools are used, and which servers there are: a [settings.Settings]. Its methods may be called at the
// same time.
type Settings interface {
	Current() *config.Config
	Revision() int
	Changeable() error
	Plan(ctx context.Context, by account.Person, base int, edits []settings.Edit) (*settings.Plan, error)
}

// rules are the settings of one tool.
type rules struct {
	Off      string // why they cannot be changed; "": they can
	Revision int
	Kind     string // that a setting gives it; "": none does
	Declared bool   // it says itself which kind it is, which no setting changes
	Job      rule
	Confirm  rule
	Deny     rule
	Time     string // how long a call may take, by a setting for this tool alone; "": there is none
	TimeBy   string // the pattern of many tools that says so
}

// rule is a switch of a tool.
type rule struct {
	On   bool
	By   string // a pattern of many tools that switches it on; it is changed in the settings
	Self bool   // the tool itself says so
}

// patternOf returns the pattern that fits a tool of a source, and no other name.
func patternOf(t mcp.Tool) string { return t.Source + "/" + literal(t.Name) }

// literal returns a pattern that fits one name.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// ownPatterns are the ways to write a rule for this tool alone.
func ownPatterns(w row) []string {
	all := []string{patternOf(w.Tool), w.Tool.Name, literal(w.Tool.Name)}
	if w.LLMName != "" {
		all = append(all, w.LLMName)
	}
	return all
}

// ruleIn reads the switch of a tool from patterns of the settings.
func ruleIn(patterns []string, w row) (r rule) {
	r.On = slices.ContainsFunc(patterns, func(p string) bool { return slices.Contains(ownPatterns(w), p) })
	others := slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return slices.Contains(ownPatterns(w), p) })
	r.By, _ = mcp.FitsTool(others, w.Tool, w.names()...)
	return r
}

// rulesOf returns the settings of a tool; nil: there are none.
func (p *Page) rulesOf(r *http.Request, w row) *rules {
	if p.set == nil {
		return nil
	}
	t := p.set.Current().Tools
	all := rules{Revision: p.set.Revision(), Declared: w.Tool.Kind != "", Job: ruleIn(t.Jobs, w), Confirm: ruleIn(t.Confirm, w), Deny: ruleIn(t.Deny, w)}
	all.Job.Self, all.Confirm.Self = w.Tool.Job, w.Tool.Annotations.Destroys()
	all.Kind = string(t.Kinds[kindKey(t.Kinds, w.Tool.Name)])
	if own := timeKey(t.Timeouts, w); t.Timeouts[own] > 0 {
		all.Time = t.Timeouts[own].String()
	} else if _, by := router.Times(t.Timeouts).Of(w.Tool, w.names()...); by != "" {
		all.TimeBy = by
	}
	if err := p.set.Changeable(); err != nil {
		all.Off = settings.Explain(ui.Lang(r), err)
	}
	return &all
}

// kindKey is the key by which the settings give a tool, and no other one, a kind.
func kindKey(kinds map[string]mcp.Kind, name string) string {
	if _, there := kinds[name]; there {
		return name
	}
	return literal(name)
}

// timeKey is the key by which the settings give a tool, and no other one, a time limit.
func timeKey(times map[string]time.Duration, w row) string {
	for _, key := range ownPatterns(w) {
		if _, there := times[key]; there {
			return key
		}
	}
	return patternOf(w.Tool)
}

// names returns the other names of a tool.
func (w row) names() []string {
	names := []string{mcp.FunctionName(w.Tool.Name)}
	if w.LLMName != "" {
		names = append(names, w.LLMName)
	}
	return names
}

// timeTyped reads the time limit of a form, in the spelling of the settings. "": there is none.
func timeTyped(f *ui.Form) (limit string, ok bool) {
	typed := f.Get("timeout")
	if typed == "" {
		return "", true
	}
	d, err := time.ParseDuration(typed)
	if seconds, number := strconv.Atoi(typed); number == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	return d.String(), err == nil && d >= time.Second && d <= time.Hour
}

// edits lists the changes of settings by which a tool is used as was chosen.
func (p *Page) edits(f *ui.Form, w row) (all []settings.Edit) {
	t := p.set.Current().Tools
	key, kind := kindKey(t.Kinds, w.Tool.Name), f.Get("kind")
	if kind != string(t.Kinds[key]) && (kind == "" || kind == string(mcp.Control) || kind == string(mcp.Query)) && w.Tool.Kind == "" {
		all = append(all, settings.Edit{Path: []string{"tools", "kinds", key}, Value: kind, Remove: kind == ""})
	}
	if limit, ok := timeTyped(f); ok {
		own := timeKey(t.Timeouts, w)
		was := ""
		if t.Timeouts[own] > 0 {
			was = t.Timeouts[own].String()
		}
		if limit != was {
			all = append(all, settings.Edit{Path: []string{"tools", "timeouts", own}, Value: limit, Remove: limit == ""})
		}
	}
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"jobs", t.Jobs}, {"confirm", t.Confirm}, {"deny", t.Deny}} {
		want := f.Has(list.name, "yes")
		if ruleIn(list.patterns, w).On == want {
			continue
		}
		next := slices.DeleteFunc(slices.Clone(list.patterns), func(p string) bool { return slices.Contains(ownPatterns(w), p) })
		if want {
			next = append(next, patternOf(w.Tool))
		}
		all = append(all, settings.Edit{Path: []string{"tools", list.name}, Value: listOf(next)})
	}
	return all
}

// listOf returns texts as JSON has them.
func listOf(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, s := range texts {
		list = append(list, s)
	}
	return list
}

// setRules changes how a tool is used.
func (p *Page) setRules(w http.ResponseWriter, r *http.Request, f *ui.Form, s single) {
	if !s.Owner || p.set == nil {
		p.site.Refused(w, r, account.ErrForbidden)
		return
	}
	base, _ := strconv.Atoi(f.Get("revision")) // of what is none: nothing was set then
	if _, ok := timeTyped(f); !ok {
		f.Wrong("timeout", p.site.Say(r, "tools/bad-time"))
		p.show(w, r, f, &s, nil)
		return
	}
	edits := p.edits(f, s.row)
	if len(edits) == 0 {
		p.site.Done(w, r, s.Path, "tools/unchanged")
		return
	}
	if err := p.plan(w, r, base, edits, s.Path); err != nil && p.explain(w, r, f, "", err) {
		p.show(w, r, f, &s, nil)
	}
}

// plan leads to the page on which the edits of settings are looked at before they count, and from there to another one.
func (p *Page) plan(w http.ResponseWriter, r *http.Request, base int, edits []settings.Edit, then string) error {
	by := access.PersonOf(r)
	if err := p.pace.Often(by.ID, "settings"); err != nil {
		return err
	}
	plan, err := p.set.Plan(r.Context(), by, base, edits)
	if err == nil {
		ui.Redirect(w, r, ui.Prefix+"settings/-/plan/"+plan.ID+"?"+url.Values{"to": {then}}.Encode())
	}
	return err
}

// explain notes in a form why the settings were not changed. Not ok: it has been answered.
func (p *Page) explain(w http.ResponseWriter, r *http.Request, f *ui.Form, field string, err error) (ok bool) {
	if often, is := errors.AsType[*account.TooOftenError](err); is {
		return p.site.Explain(w, r, f, "", often)
	}
	why := settings.Explain(ui.Lang(r), err)
	if why == "" {
		return p.site.Explain(w, r, f, field, err)
	}
	f.Wrong(field, why)
	return true
}
