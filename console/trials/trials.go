// Package trials is the pages on which people try things beside the talks: a kept turn again, voices side by side, two agents
// over the same turns; and what turns have cost.
package trials

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"xiaozhi/console/agents"
	"xiaozhi/console/live"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/store"
)

// Files are the templates of the pages, their style and their script.
//
//go:embed *.html *.css *.js
var Files embed.FS

// Topic is that of a run, whose number is the key.
const Topic = "run"

// Lab tries things: a [lab.Lab].
type Lab interface {
	Kept(ctx context.Context, turn string) (lab.Kept, error)
	Replay(person string, k lab.Kept, order lab.ReplayOrder) (*lab.Run, error)
	Voices(person, sentence string, all []lab.Voice) (*lab.Run, error)
	Last(ctx context.Context, order lab.CompareOrder) ([]lab.Kept, error)
	Estimate(ctx context.Context, order lab.CompareOrder, turns []lab.Kept) (lab.Estimate, error)
	Compare(person string, order lab.CompareOrder, turns []lab.Kept) (*lab.Run, error)
	Costs(ctx context.Context, q store.CostQuery) (lab.Costs, error)
	Find(person, run string) (*lab.Run, error)
}

// Stock tells what can be tried.
type Stock interface {
	Roles() []agents.Role
	Voices() []agents.Voice
	Devices(r *http.Request) []agents.Device
	// Names lists the agents that who asks may know of; mine: those that they may change.
	Names(r *http.Request, mine bool) []string
	// Change gives an agent other settings, by a merge patch.
	Change(r *http.Request, agent string, patch []byte) error
	// Sides says which sides of a turn can be heard.
	Sides(ctx context.Context, turn string) (user, reply bool, err error)
	DeviceOwner(ctx context.Context, device string) (string, error)
	TurnOwner(ctx context.Context, turn string) (string, error)
	// Talk returns the talk that a turn is of.
	Talk(ctx context.Context, turn string) (string, error)
	Did(r *http.Request, act, object string, err error)
	Currency() string
	Zone() *time.Location
}

// Options say what the pages use. Without a Lab there are no pages.
type Options struct {
	Lab   Lab
	Stock Stock
}

// Page shows trials.
type Page struct {
	site  *ui.Site
	o     Options
	typed *lru.Cache[string, *ui.Form] // what was typed for a run, by its number
}

// keptForms are so many runs of which it is remembered what was typed.
const keptForms = 64

// New returns the pages.
func New(site *ui.Site, o Options) *Page {
	return &Page{site, o, lru.New[string, *ui.Form](keptForms, 0)}
}

const (
	path        = ui.Prefix + "trials"
	voicesPath  = path + "/voices"
	comparePath = path + "/compare"
	turnsPath   = path + "/turns"
	costsPath   = ui.Prefix + "costs"
)

var (
	member = account.Need{Role: account.Member, Scope: account.Admin}
	own    = account.Need{Role: account.Member, Scope: account.Admin, Own: true}
)

// Routes are those of the pages.
func (p *Page) Routes() []access.Route {
	if p.o.Lab == nil {
		return nil
	}
	ofTurn := func(r *http.Request) (string, error) { return p.o.Stock.TurnOwner(r.Context(), r.PathValue("turn")) }
	ofDevice := func(r *http.Request) (string, error) {
		return p.o.Stock.DeviceOwner(r.Context(), r.PathValue("device"))
	}
	return []access.Route{
		p.site.Page("GET "+voicesPath, access.Route{Need: member}, p.showVoices),
		p.site.Page("POST "+voicesPath, access.Route{Need: member}, p.tryVoices),
		p.site.Page("POST "+voicesPath+"/pick", access.Route{Need: member}, p.pick),
		p.site.Page("GET "+turnsPath+"/{turn}", access.Route{Need: own, Owner: ofTurn}, p.showReplay),
		p.site.Page("POST "+turnsPath+"/{turn}", access.Route{Need: own, Owner: ofTurn}, p.tryReplay),
		p.site.Page("GET "+comparePath, access.Route{Need: member}, p.showCompare),
		p.site.Page("POST "+comparePath+"/{device}", access.Route{Need: own, Owner: ofDevice}, p.tryCompare),
		p.site.Page("POST "+path+"/cancel/{run}", access.Route{Need: member}, p.cancel),
		p.site.Page("GET "+costsPath, access.Route{Need: member}, p.showCosts),
	}
}

// Topics lists the live parts: how a run does, and each of its rows.
func (p *Page) Topics() []live.Topic {
	if p.o.Lab == nil {
		return nil
	}
	return []live.Topic{{Name: Topic, Need: member, Parts: p.parts}}
}

func (p *Page) parts(r *http.Request, id string) (parts []live.Part, err error) {
	found, err := p.o.Lab.Find(lab.Person(r), id)
	if err != nil {
		return nil, err
	}
	run := p.run(r, found)
	if f, ok := p.typed.Get(id); ok {
		run.choose(f.Get("agent"))
	}
	add := func(id, template string, data any) {
		html, wrong := p.site.Fragment(r, template, data)
		parts, err = append(parts, live.Part{ID: id, HTML: html}), errors.Join(err, wrong)
	}
	add("run-state", "trial-state", run)
	if run.Kind == "compare" {
		add("run-sum", "trial-sum", run)
	}
	for i := range run.Rows {
		add(run.Rows[i].ID, "trial-row-"+run.Kind, run.Rows[i])
	}
	return parts, err
}

// run is a trial as the page shows it.
type run struct {
	lab.Snapshot

	Rows []*row
	Sum  *lab.Compared
	Lang text.Lang
	Goes bool // it goes on
}

// row is a part of a trial's outcome; it is shown also before it is there.
type row struct {
	ID       string
	N        int // from 1 on
	Goes     bool
	Voice    *lab.VoiceRow
	Replay   *lab.ReplayRow
	Compare  *lab.CompareRow
	Run      string
	Lang     text.Lang
	Mine     []string // agents that can have the voice
	For      string   // the one of them that the voices are compared for
	Currency string
	Reply    bool // the kept turn's own answer can be heard
}

// run describes a run, with a row for each that is expected.
func (p *Page) run(r *http.Request, from *lab.Run) *run {
	s, _ := from.Snapshot(0)
	out := &run{Snapshot: s, Goes: s.State == lab.Running, Lang: ui.Lang(r)}
	if sum, ok := s.Summary.(lab.Compared); ok {
		out.Sum = &sum
	}
	var mine []string
	if s.Kind == "voices" {
		mine = p.o.Stock.Names(r, true)
	}
	for i := range max(s.Of, len(s.Rows)) {
		one := &row{ID: "run-row-" + strconv.Itoa(i+1), N: i + 1, Goes: out.Goes, Run: s.ID, Lang: out.Lang, Mine: mine, Currency: p.o.Stock.Currency()}
		if i < len(s.Rows) {
			switch v := s.Rows[i].(type) {
			case lab.VoiceRow:
				one.Voice = &v
			case lab.ReplayRow:
				one.Replay = &v
				_, one.Reply, _ = p.o.Stock.Sides(r.Context(), v.Turn) // what cannot be found out cannot be heard
			case lab.CompareRow:
				one.Compare = &v
			}
		}
		out.Rows = append(out.Rows, one)
	}
	return out
}

// choose says for which agent voices are compared.
func (r *run) choose(agent string) {
	for _, one := range r.Rows {
		one.For = agent
	}
}

// MS writes milliseconds that are known.
func (*row) MS(v int64) string {
	switch {
	case v == 0:
		return "–"
	case v < 10_000:
		return strconv.FormatInt(v, 10) + " ms"
	}
	return strconv.FormatFloat(float64(v)/1000, 'f', 1, 64) + " s"
}

// Words say why something has failed.
func (r *row) Words(err error) string { return lab.WordsIn(r.Lang, err) }

// Words say why something has failed.
func (r *run) Words(err error) string { return lab.WordsIn(r.Lang, err) }

// asked returns the run that a page was asked to show, and what was typed for it; nil: none, or it is forgotten.
func (p *Page) asked(r *http.Request, kind string) (*run, *ui.Form) {
	id := r.URL.Query().Get("run")
	if id == "" {
		return nil, nil
	}
	found, err := p.o.Lab.Find(lab.Person(r), id)
	if err != nil || found.Kind != kind {
		return nil, nil
	}
	f, _ := p.typed.Get(id)
	return p.run(r, found), f
}

// begun leads to the page of a run that has begun; what was typed for it stands there again.
func (p *Page) begun(w http.ResponseWriter, r *http.Request, f *ui.Form, run *lab.Run, to string, query url.Values) {
	p.typed.Put(run.ID, f, 0)
	query.Set("run", run.ID)
	ui.Redirect(w, r, to+"?"+query.Encode()+"#run")
}

// cancel ends a run of who asks.
func (p *Page) cancel(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	found, err := p.o.Lab.Find(lab.Person(r), r.PathValue("run"))
	if err != nil {
		p.site.NotFound(w, r)
		return
	}
	found.Cancel()
	ui.Redirect(w, r, f.Get("to"))
}

// missing answers for what is not there, or not for who asks.
func (p *Page) missing(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, store.ErrNotFound) || p.site.Reason(r, err) != "" {
		p.site.NotFound(w, r)
		return
	}
	p.site.Refused(w, r, err)
}

// role returns the services that can do something.
func (p *Page) role(key string) agents.Role {
	all := p.o.Stock.Roles()
	if i := slices.IndexFunc(all, func(role agents.Role) bool { return role.Key == key }); i >= 0 {
		return all[i]
	}
	return agents.Role{Key: key}
}

// mayUse notes in a form that an agent is not for who asks.
func (p *Page) mayUse(r *http.Request, f *ui.Form, field string) (name string) {
	name = f.Get(field)
	if name != "" && !slices.Contains(p.o.Stock.Names(r, false), name) {
		f.Wrong(field, p.site.Say(r, "trials/no-agent", name))
	}
	return name
}
