package api

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/routine"
)

// Routines owns what is done at times and after events: a [routine.Book].
type Routines interface {
	List() []routine.Routine
	Find(id string) (routine.Routine, error)
	Problems() []routine.Problem
	Add(ctx context.Context, r routine.Routine) (made routine.Routine, token string, err error)
	Replace(ctx context.Context, id string, d routine.Definition) (routine.Routine, error)
	Delete(ctx context.Context, id string) error
	Begin(id string) error
	Opens(id, token string) bool
	Hook(id, token, sent string) error
}

// Routine is a routine as programs see it.
type Routine struct {
	ID     string         `json:"id"`
	Source routine.Source `json:"source"`
	File   string         `json:"file,omitempty"`
	By     string         `json:"by,omitempty"`
	Made   time.Time      `json:"made,omitzero"`

	routine.Definition

	Due     time.Time       `json:"due,omitzero"`
	Ran     time.Time       `json:"ran,omitzero"`
	Outcome routine.Outcome `json:"outcome,omitempty"`
	Why     string          `json:"why,omitempty"`
	Runs    int             `json:"runs"`
	Missed  int             `json:"missed"` // times

	Token string `json:"token,omitempty"` // of its hook, once
}

// RoutineList is the answer to GET /api/v1/routines.
type RoutineList struct {
	Routines []Routine        `json:"routines"`
	Problems []RoutineProblem `json:"problems"` // of files, for owners
}

// RoutineProblem says what is wrong with a file.
type RoutineProblem struct {
	File string `json:"file"`
	What string `json:"what"`
}

func routineOf(r routine.Routine) Routine {
	return Routine{
		ID: r.ID, Source: r.Source, File: r.File, By: r.By, Made: r.Made, Definition: r.Definition,
		Due: r.Due, Ran: r.Ran, Outcome: r.Outcome, Why: r.Why, Runs: r.Runs, Missed: r.Missed,
	}
}

// maxHook bounds what a hook is sent, in bytes.
const maxHook = 16 << 10

// routineRoutes are those of routines.
func (a *api) routineRoutes() []access.Route {
	look := account.Need{Role: account.Member, Scope: account.Read}
	act := account.Need{Role: account.Member, Scope: account.Say}
	of := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: need, Handler: h}
	}
	return []access.Route{
		of("GET /api/v1/routines", look, a.routines),
		of("POST /api/v1/routines", act, a.addRoutine),
		of("GET /api/v1/routines/{routine}", look, a.routine),
		of("PUT /api/v1/routines/{routine}", act, a.changeRoutine),
		of("DELETE /api/v1/routines/{routine}", act, a.deleteRoutine),
		of("POST /api/v1/routines/{routine}/run", act, a.runRoutine),
		{Pattern: "POST /api/v1/hooks/{routine}", For: access.Bearers, Handler: http.HandlerFunc(a.hook), MaxBody: maxHook},
	}
}

// own returns whether a person may see and change a routine: owners all, others what they have made, and what was set by voice on
// their devices.
func (a *api) own(r *http.Request) (func(one routine.Routine) bool, error) {
	p := access.PersonOf(r)
	names, err := a.names(r)
	return func(one routine.Routine) bool {
		_, mine := names[one.Device]
		return p.Is(account.Owner) || p.ID != "" && one.ByID == p.ID || mine && one.Source == routine.ByVoice
	}, err
}

// named returns the routine that the path names.
func (a *api) named(r *http.Request) (routine.Routine, error) {
	own, err := a.own(r)
	if err != nil {
		return routine.Routine{}, err
	}
	one, err := a.Routines.Find(r.PathValue("routine"))
	if err == nil && !own(one) {
		err = routine.ErrNone
	}
	return one, err
}

func (a *api) routines(w http.ResponseWriter, r *http.Request) {
	own, err := a.own(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := RoutineList{Routines: []Routine{}, Problems: []RoutineProblem{}}
	for _, one := range a.Routines.List() {
		if own(one) {
			list.Routines = append(list.Routines, routineOf(one))
		}
	}
	if access.PersonOf(r).Is(account.Owner) {
		for _, p := range a.Routines.Problems() {
			list.Problems = append(list.Problems, RoutineProblem(p))
		}
	}
	access.Answer(w, http.StatusOK, list)
}

func (a *api) routine(w http.ResponseWriter, r *http.Request) {
	one, err := a.named(r)
	a.answerRoutine(w, r, http.StatusOK, one, "", err)
}

// answerRoutine answers a routine, or what went wrong.
func (a *api) answerRoutine(w http.ResponseWriter, r *http.Request, status int, one routine.Routine, token string, err error) {
	if m, is := errors.AsType[*routine.Mistake](err); is {
		access.Refuse(w, http.StatusBadRequest, m.ID, m.Both())
		return
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	told := routineOf(one)
	told.Token = token
	access.Answer(w, status, told)
}

// definition reads what a routine is to be, and whether the one who asks may have it so: tools, and what happens on all devices, are
// for owners.
func (a *api) definition(r *http.Request) (d routine.Definition, err error) {
	if err := read(r, &d); err != nil {
		return d, err
	}
	p := access.PersonOf(r)
	if d.Tool != nil || d.On != nil && !d.On.Hook {
		err = p.May(account.Need{Role: account.Owner, Scope: account.Tools}, "", time.Time{})
	}
	if priority, perr := mail.ParsePriority(d.Priority); err == nil && perr == nil && priority == mail.Urgent {
		err = p.May(account.Need{Role: account.Member, Scope: account.Urgent}, "", time.Time{})
	}
	if err == nil && d.To != "" && d.To != routine.Here {
		_, err = a.Sender.Meant(r.Context(), d.To, may(p))
	}
	return d, err
}

func (a *api) addRoutine(w http.ResponseWriter, r *http.Request) {
	p := access.PersonOf(r)
	d, err := a.definition(r)
	if err == nil {
		err = a.pace.Often(p.ID, "routines")
	}
	var one routine.Routine
	var token string
	if err == nil {
		one, token, err = a.Routines.Add(r.Context(), routine.Routine{Source: routine.ByAPI, ByID: p.ID, By: p.Name, Definition: d})
	}
	a.Guard.Did(r, "routine.add", cmp.Or(one.ID, d.Name), err)
	a.answerRoutine(w, r, http.StatusCreated, one, token, err)
}

func (a *api) changeRoutine(w http.ResponseWriter, r *http.Request) {
	d, err := a.definition(r)
	var one routine.Routine
	if err == nil {
		one, err = a.named(r)
	}
	if err == nil && one.Source == routine.ByVoice && d.To != one.Device {
		err = routine.ErrDevice
	}
	if err == nil {
		one, err = a.Routines.Replace(r.Context(), one.ID, d)
	}
	a.Guard.Did(r, "routine.change", r.PathValue("routine"), err)
	a.answerRoutine(w, r, http.StatusOK, one, "", err)
}

func (a *api) deleteRoutine(w http.ResponseWriter, r *http.Request) {
	one, err := a.named(r)
	if err == nil {
		err = a.Routines.Delete(r.Context(), one.ID)
	}
	a.Guard.Did(r, "routine.delete", r.PathValue("routine"), err)
	a.answerRoutine(w, r, http.StatusOK, one, "", err)
}

func (a *api) runRoutine(w http.ResponseWriter, r *http.Request) {
	one, err := a.named(r)
	if err == nil {
		err = a.pace.Often(access.PersonOf(r).ID, "routine "+one.ID)
	}
	if err == nil {
		err = a.Routines.Begin(one.ID)
	}
	a.Guard.Did(r, "routine.run", r.PathValue("routine"), err)
	a.answerRoutine(w, r, http.StatusAccepted, one, "", err)
}

// hook begins a routine, for who has its token. What is sent is what has happened.
func (a *api) hook(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("routine")
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token = cmp.Or(token, r.URL.Query().Get("token"))
	sent, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	if err != nil {
		a.fail(w, r, errBody)
		return
	}
	opens, right := a.Routines.Opens(id, token), ""
	if opens {
		right = id
	}
	if !a.hooks.Listens(r.RemoteAddr, right) {
		a.fail(w, r, routine.ErrOften)
		return
	}
	if !opens {
		a.hooks.Wrong(r.RemoteAddr)
		a.fail(w, r, errHook)
		return
	}
	if err := a.Routines.Hook(id, token, string(sent)); err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusAccepted, struct {
		Routine string `json:"routine"`
	}{id})
}
