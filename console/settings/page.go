// Package settings is the page by which owners see and change the settings: what they type is checked, built and tested,
// shown as a difference, applied, and watched.
package settings

import (
	"cmp"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
)

// Files are the templates and styles of the page.
//
//go:embed *.html *.css
var Files embed.FS

// Topic names the live parts that show how a change goes.
const Topic = "settings"

// Page shows the settings.
type Page struct {
	site    *ui.Site
	from    *settings.Settings
	backups Backups
}

// New returns the page.
func New(site *ui.Site, from *settings.Settings, backups Backups) *Page {
	return &Page{site, from, backups}
}

const path = ui.Prefix + "settings"

// words begin the ids of the texts of the page.
const words = "settings/"

var owners = account.Need{Role: account.Owner, Scope: account.Admin}

// Routes are for owners alone.
func (p *Page) Routes() []access.Route {
	page := func(pattern string, h http.HandlerFunc) access.Route {
		return p.site.Page(pattern, access.Route{Need: owners}, h)
	}
	export := page("GET "+path+"/-/export", p.export)
	export.Use, export.Need.Again = access.Export, true
	return []access.Route{
		page("GET "+path, p.all),
		page("GET "+path+"/{group}", p.group),
		page("POST "+path+"/{group}", p.plan),
		page("GET "+path+"/-/plan/{id}", p.planned),
		page("POST "+path+"/-/plan/{id}", p.decide),
		page("GET "+path+"/-/revisions", p.revisions),
		page("POST "+path+"/-/revisions", p.undo),
		page("GET "+path+"/-/import", func(w http.ResponseWriter, r *http.Request) { p.importing(w, r, nil) }),
		page("POST "+path+"/-/import", p.imports),
		page("GET "+backupPath, func(w http.ResponseWriter, r *http.Request) { p.listBackups(w, r, nil) }),
		page("POST "+backupPath, p.backUp),
		export,
	}
}

// Topics lists the live parts.
func (p *Page) Topics() []live.Topic {
	return []live.Topic{
		live.Whole(Topic, owners, "settings-state", func(r *http.Request) (string, error) { return p.site.Fragment(r, "settings-state", p.state(r)) }),
		live.Whole(BackupTopic, owners, "backups", func(r *http.Request) (string, error) {
			b, err := p.backedUp(r)
			if err != nil {
				return "", err
			}
			return p.site.Fragment(r, "settings-backup-list", b)
		}),
	}
}

// state says how the last change goes, and why nothing can be changed.
type state struct {
	Why   string // nothing can be changed
	Held  *settings.Held
	Wrong []string // why that is held
	Watch *settings.Watch
	Last  settings.Revision // the newest; zero: nothing was set
}

func (p *Page) state(r *http.Request) state {
	s, lang := state{Held: p.from.Held(), Watch: p.from.Watching()}, ui.Lang(r)
	if err := p.from.Changeable(); err != nil {
		s.Why = settings.Explain(lang, err)
	}
	if s.Held != nil {
		for _, problem := range s.Held.Problems {
			s.Wrong = append(s.Wrong, settings.Problem(lang, problem))
		}
	}
	if all, err := p.from.Revisions(r.Context(), 0, 1); err == nil && len(all) > 0 {
		s.Last = all[0]
		s.Last.Note = s.Last.NoteIn(lang)
	}
	return s
}

// section is a group of keys on the first page.
type section struct {
	Name    string
	Keys    int
	Changed int // that were set somewhere
	Fixed   bool
}

// sections are the groups in their order, with the top keys that stand in them. What has names of its own shows only what
// was set.
var groups = []struct {
	name  string
	keys  []string
	named bool
}{
	{"voice", []string{"voice"}, false},
	{"agent", []string{"agent"}, false},
	{"tools", []string{"tools"}, false},
	{"chains", []string{"asr", "llm", "tts", "vision", "realtime", "embed"}, false},
	{"providers", []string{"providers"}, true},
	{"recording", []string{"recording", "store"}, false},
	{"reminders", []string{"reminders", "quiet"}, false},
	{"server", []string{"server", "auth", "console", "log"}, false},
	{"mcp", []string{"mcp"}, true},
	{"named", []string{"agents", "devices"}, true},
}

// groupOf names the group of a key; "": it has none.
func groupOf(key []string) string {
	for _, g := range groups {
		if len(key) > 0 && slices.Contains(g.keys, key[0]) {
			return g.name
		}
	}
	return ""
}

// keysOf lists the keys of a group.
func (p *Page) keysOf(name string) (all []settings.Key, ok bool) { return among(p.from.Keys(), name) }

// among takes the keys of a group out of all.
func among(keys []settings.Key, name string) (all []settings.Key, ok bool) {
	for _, g := range groups {
		if g.name != name {
			continue
		}
		for _, k := range keys {
			if slices.Contains(g.keys, k.Path[0]) && (!g.named || k.Set) {
				all = append(all, k)
			}
		}
		return all, true
	}
	return nil, false
}

// front is the first page.
type front struct {
	State    state
	Search   string
	Found    []row
	Next     string // path of the next page of them
	Sections []section
}

// row is a key with what people may know of it.
type row struct {
	settings.Key

	Name   string // as people write it
	Group  string
	About  string
	Shown  string
	Layer  string // where it was set
	Where  string // FILE:LINE or the like
	Line   string // to copy into a file; "": it is changed here
	Pin    string // where it is pinned; "": nowhere
	Locked bool   // it cannot be changed here

	Choices []string // that people are offered; empty: anything can be typed
	Blank   string   // what holds where it is empty; "": nobody needs to know
}

func rowOf(k settings.Key, lang text.Lang) row {
	r := row{
		Key: k, Name: k.Key(), Group: groupOf(k.Path), About: config.Sentence(k.Path, lang), Shown: written(k.Shape, k.Value.Value),
		Layer: k.Origin.Layer.String(), Where: k.Origin.Place, Locked: !k.Changeable || k.Pinned.Place != "",
	}
	if k.Changeable {
		r.Pin = k.Pinned.Place
		r.Choices, r.Blank = config.Choices(k.Path)
	} else if !k.Secret {
		r.Line = lineOf(k.Path, r.Shown, k.Shape)
	}
	return r
}

// lineOf writes a key as a line of a file.
func lineOf(key []string, shown string, shape config.Shape) string {
	value := shown
	switch shape {
	case config.ShapeList:
		value = "[" + strings.ReplaceAll(shown, "\n", ", ") + "]"
	case config.ShapeText:
		value = strconv.Quote(shown)
	case config.ShapeSwitch, config.ShapeWhole, config.ShapeNumber, config.ShapeDuration, config.ShapeSize, config.ShapeSecret, config.ShapeOther:
	}
	return strings.Join(key, ": {") + ": " + value + strings.Repeat("}", len(key)-1)
}

func (p *Page) all(w http.ResponseWriter, r *http.Request) {
	f := front{State: p.state(r), Search: strings.TrimSpace(r.URL.Query().Get("q"))}
	lang, all := ui.Lang(r), p.from.Keys()
	var rows []row
	for _, k := range all {
		if one := rowOf(k, lang); f.Search != "" && one.Group != "" {
			rows = append(rows, one)
		}
	}
	found, err := ui.List[row]{
		Path: path,
		Key:  func(one row) string { return one.Name },
		Text: func(one row) string { return one.Name + "\n" + one.About + "\n" + one.Shown },
	}.Page(r, rows, nil)
	f.Found, f.Next = found.Rows, found.Next
	for _, g := range groups {
		keys, _ := among(all, g.name)
		s := section{Name: g.name, Keys: len(keys), Fixed: true}
		for _, k := range keys {
			s.Fixed = s.Fixed && !k.Changeable
			if k.Set {
				s.Changed++
			}
		}
		f.Sections = append(f.Sections, s)
	}
	c := ui.Content{Title: p.site.Say(r, "settings/title"), Data: f, Form: ui.Filled("q", f.Search)}
	if err != nil {
		p.site.Failed(w, r, "settings", c, err)
		return
	}
	p.site.Show(w, r, "settings", c)
}

// history is the page of all changes.
type history struct {
	State     state
	Revisions []revision
	Newest    int
	InForce   int // 0: none
	Search    string
	Older     string
	Further   bool // nothing was found so far
	Stale     *stale
	Number    int // that was to be undone
}

// revision is one with its changes as they are shown.
type revision struct {
	settings.Revision

	Changes []change
}

// change is a setting that holds another value.
type change struct {
	Key      string
	Old, New string
	Was, Is  bool // it held, or holds, anything
	Secret   bool
}

func changesOf(all []config.Change) (out []change) {
	for _, c := range all {
		shape := config.ShapeOf(c.Path)
		out = append(out, change{c.Key(), shown(shape, c.Old), shown(shape, c.New), c.Old != nil, c.New != nil, c.Secret})
	}
	return out
}

// shown is a value in a sentence: a list has commas.
func shown(shape config.Shape, v any) string {
	if text := written(shape, v); text != "" {
		return strings.ReplaceAll(text, "\n", ", ")
	}
	return `""`
}

// stale holds what two people want of the same keys.
type stale struct {
	Now  int
	By   string
	Keys []both
}

// both is a key with what one person wants, and what another has set; nil: nothing of just this key.
type both struct {
	Key          string
	Mine, Theirs *change
}

// staleOf is nil for other errors.
func staleOf(err error) *stale {
	e, ok := errors.AsType[*settings.StaleError](err)
	if !ok {
		return nil
	}
	s := &stale{Now: e.Now, By: e.By}
	at := func(key string) *both {
		i := slices.IndexFunc(s.Keys, func(b both) bool { return b.Key == key })
		if i < 0 {
			i, s.Keys = len(s.Keys), append(s.Keys, both{Key: key})
		}
		return &s.Keys[i]
	}
	for _, c := range changesOf(e.Mine) {
		at(c.Key).Mine = &c
	}
	for _, c := range changesOf(e.Others) {
		at(c.Key).Theirs = &c
	}
	return s
}

func (p *Page) revisions(w http.ResponseWriter, r *http.Request) { p.list(w, r, nil, nil, 0) }

// inForce returns the revision that counts: the newest, or what stands in for it while it is held; 0: none.
func inForce(newest int, held *settings.Held) int {
	if held != nil {
		return held.Instead
	}
	return newest
}

func (p *Page) list(w http.ResponseWriter, r *http.Request, f *ui.Form, other *stale, n int) {
	h := history{State: p.state(r), Newest: p.from.Revision(), InForce: inForce(p.from.Revision(), p.from.Held()), Stale: other, Number: n, Search: strings.TrimSpace(r.URL.Query().Get("q"))}
	c := ui.Content{Title: p.site.Say(r, "settings/revisions"), Data: &h, Form: f}
	if err := p.found(r, &h); err != nil {
		p.site.Failed(w, r, "settings-revisions", c, err)
		return
	}
	p.site.Show(w, r, "settings-revisions", c)
}

// found takes the revisions that an address asks for.
func (p *Page) found(r *http.Request, h *history) error {
	before := 0
	if typed := r.URL.Query().Get("before"); typed != "" {
		var err error
		if before, err = strconv.Atoi(typed); err != nil || before < 1 {
			return account.ErrPageBad
		}
	}
	lang := ui.Lang(r)
	all, end, err := ui.Scan(h.Search, func(after *settings.Revision, n int) ([]settings.Revision, error) {
		if after != nil {
			before = after.N
		}
		return p.from.Revisions(r.Context(), before, n)
	}, func(one settings.Revision) string { return searched(one, lang) })
	for _, one := range all {
		one.Note = one.NoteIn(lang)
		h.Revisions = append(h.Revisions, revision{one, changesOf(one.Changes)})
	}
	if end != nil && end.N > 1 {
		h.Older = path + "/-/revisions?" + url.Values{"q": {h.Search}, "before": {strconv.Itoa(end.N)}}.Encode()
		h.Further = len(all) == 0
	}
	return err
}

// searched joins the words that a search finds a revision by: who, why, the keys and their values.
func searched(one settings.Revision, lang text.Lang) string {
	all := []string{strconv.Itoa(one.N), one.By, one.NoteIn(lang)}
	for _, c := range changesOf(one.Changes) {
		if all = append(all, c.Key); !c.Secret {
			all = append(all, c.Old, c.New)
		}
	}
	return strings.Join(all, "\n")
}

// export gives all that was set as a file.
func (p *Page) export(w http.ResponseWriter, r *http.Request) {
	doc, left, err := settings.Document(p.from.Current(), false)
	if err != nil {
		p.site.Refused(w, r, err)
		return
	}
	head := "# " + p.site.Say(r, "settings/export-head") + "\n"
	for _, key := range left {
		head += "# " + p.site.Say(r, "settings/export-left", key) + "\n"
	}
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="config.yaml"`)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(head + string(doc))) // the browser may be gone
}

// back is the page of the group that a change is of.
func back(changes []config.Change) string {
	group := ""
	if len(changes) > 0 {
		group = groupOf(changes[0].Path)
	}
	return cmp.Or(strings.TrimSuffix(path+"/"+group, "/"), path)
}
