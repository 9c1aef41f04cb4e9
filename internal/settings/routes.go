package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
)

// Path is where the routes begin.
const Path = "/api/v1/settings"

// API serves the settings to owners and their programs.
type API struct {
	Settings *Settings
	Guard    *access.Guard
}

// Routes are for owners alone.
func (a *API) Routes() []access.Route {
	of := func(pattern string, f http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: account.Need{Role: account.Owner, Scope: account.Admin}, Handler: f}
	}
	return []access.Route{
		of("GET "+Path, a.show),
		of("POST "+Path+"/plan", a.plan),
		of("POST "+Path+"/apply", a.apply),
		of("POST "+Path+"/undo", a.undo),
		of("GET "+Path+"/revisions", a.revisions),
		exporting(of("GET "+Path+"/export", a.export)),
		of("POST "+Path+"/import", a.imports),
	}
}

// Shown is the answer to GET /api/v1/settings.
type Shown struct {
	Revision   int          `json:"revision"`
	Changeable bool         `json:"changeable"`
	Why        string       `json:"why,omitempty"` // nothing can be changed
	Held       *ShownHeld   `json:"held,omitempty"`
	Watch      *ShownWatch  `json:"watch,omitempty"`
	Values     []ShownValue `json:"values"`
}

// ShownHeld tells of a revision that is not in force.
type ShownHeld struct {
	Revision int            `json:"revision"`
	Instead  int            `json:"instead,omitempty"`
	Problems []ShownProblem `json:"problems"`
}

// ShownProblem says why a key is refused.
type ShownProblem struct {
	Path    []string `json:"path,omitempty"`
	Message string   `json:"message"` // in both languages
}

// ShownWatch tells of the time after a change.
type ShownWatch struct {
	Revision int       `json:"revision"`
	Until    time.Time `json:"until"`
	Turns    int       `json:"turns"`
	Failed   int       `json:"failed"`
	Stuck    string    `json:"stuck,omitempty"`
}

// ShownValue is a setting.
type ShownValue struct {
	Key        string   `json:"key"`
	Path       []string `json:"path"`
	Value      any      `json:"value"` // secrets are dots
	Shape      string   `json:"shape"`
	From       string   `json:"from"`
	Place      string   `json:"place,omitempty"`
	Secret     bool     `json:"secret,omitempty"`
	Changeable bool     `json:"changeable,omitempty"`
	Own        bool     `json:"own,omitempty"`    // set in the console
	Pinned     string   `json:"pinned,omitempty"` // where it is set so that the console cannot set it
}

// ShownChange is a setting that holds another value.
type ShownChange struct {
	Key    string   `json:"key"`
	Path   []string `json:"path"`
	Old    any      `json:"old"`
	New    any      `json:"new"`
	Secret bool     `json:"secret,omitempty"`
}

// ShownPlan is a change that waits to be applied.
type ShownPlan struct {
	ID       string        `json:"id"`
	Base     int           `json:"base"`
	By       string        `json:"by"`
	Ends     time.Time     `json:"ends"`
	Changes  []ShownChange `json:"changes"`
	Warnings []string      `json:"warnings"`
	Tests    []ShownTest   `json:"tests"`
	Left     []ShownLeft   `json:"left_out,omitempty"`
}

// ShownTest is a service that would change, asked once.
type ShownTest struct {
	Section string  `json:"section"`
	Role    string  `json:"role"`
	OK      bool    `json:"ok"`
	FirstMS float64 `json:"first_ms,omitempty"`
	TotalMS float64 `json:"total_ms,omitempty"`
	Why     string  `json:"why,omitempty"`
}

// ShownLeft is a key of a document that cannot be set here.
type ShownLeft struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

// ShownRevision is a change that was put in force.
type ShownRevision struct {
	Revision int           `json:"revision"`
	At       time.Time     `json:"at"`
	By       string        `json:"by,omitempty"`
	Kind     string        `json:"kind"`
	Note     string        `json:"note,omitempty"`
	Undone   string        `json:"undone,omitempty"`
	Changes  []ShownChange `json:"changes"`
}

// RevisionList is the answer to GET /api/v1/settings/revisions, the newest first.
type RevisionList struct {
	Revisions []ShownRevision `json:"revisions"`
	Before    int             `json:"before,omitempty"` // asks for the next page
}

// Exported is the answer to GET /api/v1/settings/export.
type Exported struct {
	Document string   `json:"document"` // YAML in the shape of config.yaml, without secrets
	Left     []string `json:"left_out"` // secrets that stand in files by themselves
}

// PlanOrder is the body of POST /api/v1/settings/plan.
type PlanOrder struct {
	Base  int    `json:"base"`
	Edits []Edit `json:"edits"`
}

// ApplyOrder is the body of POST /api/v1/settings/apply.
type ApplyOrder struct {
	Plan string `json:"plan"`
}

// UndoOrder is the body of POST /api/v1/settings/undo.
type UndoOrder struct {
	Revision int `json:"revision"`
}

// ImportOrder is the body of POST /api/v1/settings/import.
type ImportOrder struct {
	Base     int    `json:"base"`
	Document string `json:"document"` // YAML or JSON
}

// problem is an answer that says why something was not done.
type problem struct {
	Code     string         `json:"code"`
	Message  string         `json:"message"`
	Problems []ShownProblem `json:"problems,omitempty"`
	Revision int            `json:"revision,omitempty"` // now, of a change that others have overtaken
	Mine     []ShownChange  `json:"mine,omitempty"`
	Others   []ShownChange  `json:"others,omitempty"`
	Left     []ShownLeft    `json:"left_out,omitempty"`
}

func (a *API) show(w http.ResponseWriter, _ *http.Request) {
	access.Answer(w, http.StatusOK, Describe(a.Settings))
}

// Describe describes all settings to programs.
func Describe(s *Settings) Shown {
	out := Shown{Revision: s.Revision(), Values: []ShownValue{}}
	if err := s.Changeable(); err != nil {
		out.Why = both(err)
	}
	out.Changeable = out.Why == ""
	if h := s.Held(); h != nil {
		out.Held = &ShownHeld{h.Revision, h.Instead, shownProblems(h.Problems)}
	}
	if v := s.Watching(); v != nil {
		out.Watch = &ShownWatch{v.Revision, v.Until, v.Turns, v.Failed, v.Stuck}
	}
	for _, k := range s.Keys() {
		out.Values = append(out.Values, ShownValue{
			Key: k.Key(), Path: k.Path, Value: k.Value.Value, Shape: string(k.Shape), From: k.Origin.Layer.String(), Place: k.Origin.Place,
			Secret: k.Secret, Changeable: k.Changeable, Own: k.Own, Pinned: k.Pinned.Place,
		})
	}
	return out
}

func shownProblems(all []*config.Error) []ShownProblem {
	out := []ShownProblem{}
	for _, p := range all {
		out = append(out, ShownProblem{p.Path, p.Error()})
	}
	return out
}

func shownChanges(all []config.Change) []ShownChange {
	out := []ShownChange{}
	for _, c := range all {
		out = append(out, ShownChange{c.Key(), c.Path, c.Old, c.New, c.Secret})
	}
	return out
}

func shownLeft(all []Left) (out []ShownLeft) {
	for _, l := range all {
		out = append(out, ShownLeft{keyName(l.Path), both(l.Why)})
	}
	return out
}

// DescribePlan describes a plan to programs.
func DescribePlan(p *Plan) ShownPlan {
	out := ShownPlan{ID: p.ID, Base: p.Base, By: p.By, Ends: p.At.Add(planTime), Changes: shownChanges(p.Changes), Warnings: []string{}, Tests: []ShownTest{}, Left: shownLeft(p.Left)}
	for _, w := range p.Warnings {
		out.Warnings = append(out.Warnings, string(w))
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for _, t := range p.Tests {
		out.Tests = append(out.Tests, ShownTest{t.Section, t.Role, t.OK, ms(t.First), ms(t.Total), t.Why})
	}
	return out
}

func shownRevision(r Revision) ShownRevision {
	return ShownRevision{r.N, r.At, r.By, string(r.Kind), r.Note, r.Undone, shownChanges(r.Changes)}
}

// both says in both languages why something was not done.
func both(err error) string {
	english, chinese := Explain(text.English, err), Explain(text.Chinese, err)
	if english == "" {
		return err.Error()
	}
	if english == chinese {
		return english
	}
	return english + " / " + chinese
}

// order reads the body of a request. Not ok: it has been answered.
func order[T any](a *API, w http.ResponseWriter, r *http.Request) (o T, ok bool) {
	body, ok := a.Guard.Body(w, r)
	if !ok {
		return o, false
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	if err := in.Decode(&o); err != nil {
		a.fail(w, r, ErrNoDoc)
		return o, false
	}
	return o, true
}

func (a *API) plan(w http.ResponseWriter, r *http.Request) {
	o, ok := order[PlanOrder](a, w, r)
	if !ok {
		return
	}
	p, err := a.Settings.Plan(r.Context(), access.PersonOf(r), o.Base, o.Edits)
	a.planned(w, r, p, err)
}

func (a *API) imports(w http.ResponseWriter, r *http.Request) {
	o, ok := order[ImportOrder](a, w, r)
	if !ok {
		return
	}
	p, err := a.Settings.Import(r.Context(), access.PersonOf(r), o.Base, []byte(o.Document))
	a.planned(w, r, p, err)
}

func (a *API) planned(w http.ResponseWriter, r *http.Request, p *Plan, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, DescribePlan(p))
}

func (a *API) apply(w http.ResponseWriter, r *http.Request) {
	o, ok := order[ApplyOrder](a, w, r)
	if !ok {
		return
	}
	done, err := a.Settings.Apply(r.Context(), access.PersonOf(r), o.Plan)
	a.changed(w, r, done, err)
}

func (a *API) undo(w http.ResponseWriter, r *http.Request) {
	o, ok := order[UndoOrder](a, w, r)
	if !ok {
		return
	}
	done, err := a.Settings.Undo(r.Context(), access.PersonOf(r), o.Revision)
	a.changed(w, r, done, err)
}

func (a *API) changed(w http.ResponseWriter, r *http.Request, done Revision, err error) {
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, shownRevision(done))
}

// pageRows is how many revisions a page has.
const pageRows = 50

func (a *API) revisions(w http.ResponseWriter, r *http.Request) {
	before, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("before"), "0"))
	if err != nil || before < 0 {
		a.Guard.Fail(w, r, account.ErrPageBad)
		return
	}
	all, err := a.Settings.Revisions(r.Context(), before, pageRows)
	if err != nil {
		a.Guard.Fail(w, r, err)
		return
	}
	out := RevisionList{Revisions: []ShownRevision{}}
	for _, one := range all {
		out.Revisions = append(out.Revisions, shownRevision(one))
	}
	if n := len(all); n == pageRows && all[n-1].N > 1 {
		out.Before = all[n-1].N
	}
	access.Answer(w, http.StatusOK, out)
}

func (a *API) export(w http.ResponseWriter, r *http.Request) {
	doc, left, err := Document(a.Settings.Current(), false)
	a.Guard.Did(r, "settings.export", "", err)
	if err != nil {
		a.Guard.Fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, Exported{string(doc), append([]string{}, left...)})
}

// fail answers with what an error says.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if Explain(text.English, err) == "" {
		a.Guard.Fail(w, r, err)
		return
	}
	out, status := problem{Code: "settings", Message: both(err)}, http.StatusBadRequest
	if e, ok := errors.AsType[*InvalidError](err); ok {
		out.Problems = shownProblems(e.Problems)
	}
	if e, ok := errors.AsType[*PinnedError](err); ok {
		out.Problems, status = []ShownProblem{{e.Path, e.Error()}}, http.StatusConflict
	}
	if e, ok := errors.AsType[*StaleError](err); ok {
		out.Revision, out.Mine, out.Others, status = e.Now, shownChanges(e.Mine), shownChanges(e.Others), http.StatusConflict
	}
	if e, ok := errors.AsType[*LeftError](err); ok {
		out.Left = shownLeft(e.Left)
	}
	for _, known := range []struct {
		err    error
		status int
	}{
		{ErrReadOnly, http.StatusForbidden}, {ErrNoStore, http.StatusForbidden}, {ErrNoPlan, http.StatusNotFound}, {ErrNoneSuch, http.StatusNotFound},
		{ErrNoChange, http.StatusConflict}, {ErrElsewhere, http.StatusConflict}, {ErrNotReady, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, known.err) {
			status = known.status
		}
	}
	access.Answer(w, status, out)
}

// exporting marks a route by which people take things away.
func exporting(r access.Route) access.Route {
	r.Use, r.Need.Again = access.Export, true
	return r
}
