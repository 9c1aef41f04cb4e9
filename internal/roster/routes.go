package roster

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
)

// Paths of the routes.
const (
	Path        = "/api/v1/agents"
	DevicesPath = "/api/v1/devices"
)

// Agent describes an agent to programs.
type Agent struct {
	Name     string          `json:"name"`
	From     string          `json:"from"`            // store, settings or prompt
	Place    string          `json:"place,omitempty"` // in the settings
	Settings json.RawMessage `json:"settings"`        // in the shape of agents.NAME
	Rev      int             `json:"rev,omitempty"`   // of the store
	By       string          `json:"by,omitempty"`
	Note     string          `json:"note,omitempty"`
	At       *time.Time      `json:"at,omitempty"`
	Shadowed bool            `json:"shadowed,omitempty"` // one of this name in the store does not count beside that of the settings
	Trouble  string          `json:"trouble,omitempty"`  // why it is not used
	Devices  []string        `json:"devices"`            // that were given it

	Owner string `json:"-"` // id of the account whose agent it is; "": everybody's
}

// AgentList is the answer to GET /api/v1/agents.
type AgentList struct {
	Agents []Agent `json:"agents"`
}

// RevisionList is the answer to GET /api/v1/agents/NAME/revisions, the newest first.
type RevisionList struct {
	Revisions []Agent `json:"revisions"`
}

// RestoreOrder is the body of POST /api/v1/agents/NAME/restore.
type RestoreOrder struct {
	Rev int `json:"rev"`
}

// DeviceAgent is the body of PUT /api/v1/devices/ID/agent, and its answer.
type DeviceAgent struct {
	Device string `json:"device,omitempty"`
	Agent  string `json:"agent"` // "": that of all
}

// API serves a roster to people and their programs.
type API struct {
	Roster *Roster
	Guard  *access.Guard
	// Device returns the one spelling of a device's id.
	Device func(typed string) string
	// DeviceOwner returns the id of the account that a device belongs to; "": nobody's.
	DeviceOwner func(ctx context.Context, device string) (string, error)
}

// Routes declare who may do what: members look at what is everybody's or theirs, and change what is theirs; owners change
// everything.
func (a *API) Routes() []access.Route {
	look := account.Need{Role: account.Member, Scope: account.Read}
	change := account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	one := Path + "/{name}"
	of := func(need account.Need, pattern string, owner func(*http.Request) (string, error), f http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: need, Owner: owner, Handler: f}
	}
	return []access.Route{
		of(look, "GET "+Path, nil, a.list),
		of(look, "GET "+one, nil, a.show),
		of(look, "GET "+one+"/revisions", nil, a.revisions),
		of(change, "PUT "+one, a.owner, a.changing("agent.set", (*Roster).Set)),
		of(change, "PATCH "+one, a.owner, a.changing("agent.set", (*Roster).Patch)),
		of(change, "POST "+one+"/restore", a.owner, a.changing("agent.restore", restore)),
		of(change, "DELETE "+one, a.owner, a.remove),
		of(change, "PUT "+DevicesPath+"/{id}/agent", a.deviceOwner, a.assign),
	}
}

// owner returns whose an agent is. One that never was is nobody's, so that owners alone make new ones.
func (a *API) owner(r *http.Request) (string, error) {
	return a.ownerOf(r.Context(), r.PathValue("name"))
}

// ownerOf returns whose an agent is, or was when it was deleted; "": everybody's.
func (a *API) ownerOf(ctx context.Context, name string) (string, error) {
	if agent, there := a.Roster.Get(name); there {
		return agent.Owner, nil
	}
	all, err := a.Roster.o.Records.Revisions(ctx, name)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0].Owner, nil
}

// MayKnow returns an error as for an agent that is not there if it is not for the one who asks.
func (a *API) MayKnow(r *http.Request, name string) error { return a.private(r, name) }

// private returns an error as for an agent that is not there if it is somebody else's than of the one who asks: what
// people have written into theirs is not for others. The settings' own are everybody's.
func (a *API) private(r *http.Request, name string) error {
	p := access.PersonOf(r)
	if p.Role == account.Owner || a.Roster.o.Users.Agent(name).Place != "" {
		return nil
	}
	owner, err := a.ownerOf(r.Context(), name)
	if err == nil && owner != "" && owner != p.ID {
		err = refuse(Missing, "agents/none", name)
	}
	return err
}

func (a *API) deviceOwner(r *http.Request) (string, error) {
	return a.DeviceOwner(r.Context(), a.Device(r.PathValue("id")))
}

// devices returns whom which device was given, as far as the one who asks may know: owners know all devices.
func (a *API) devices(r *http.Request) map[string][]string {
	if access.PersonOf(r).Role != account.Owner {
		return nil
	}
	return a.Roster.Devices()
}

// describe returns an agent by name. Not ok: there is none.
func (a *API) describe(name string, devices map[string][]string) (Agent, bool) {
	agent, seen := Agent{Name: name, From: "prompt", Settings: json.RawMessage("{}"), Devices: devices[name]}, a.Roster.o.Users.Agent(name)
	kept, there := a.Roster.Get(name)
	if agent.Devices == nil {
		agent.Devices = []string{}
	}
	switch {
	case seen.Place != "":
		agent.From, agent.Place, agent.Shadowed = "settings", seen.Place, there
		if seen.Doc != nil {
			agent.Settings = seen.Doc
		}
	case there:
		shown := revision(kept)
		shown.Devices, shown.Trouble = agent.Devices, seen.Trouble
		return shown, true
	}
	return agent, slices.Contains(a.Roster.o.Users.Names(), name)
}

// revision describes a revision by itself.
func revision(r Revision) Agent {
	return Agent{Name: r.Agent, From: "store", Settings: json.RawMessage(r.Doc), Rev: r.Rev, By: r.By, Note: r.Note, At: &r.At, Devices: []string{}, Owner: r.Owner}
}

func (a *API) list(w http.ResponseWriter, r *http.Request) {
	answer := AgentList{Agents: slices.Concat([]Agent{}, a.All(r))}
	access.Answer(w, http.StatusOK, answer)
}

func (a *API) show(w http.ResponseWriter, r *http.Request) {
	agent, err := a.One(r, r.PathValue("name"))
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, agent)
}

func (a *API) revisions(w http.ResponseWriter, r *http.Request) {
	all, err := a.Roster.Revisions(r.Context(), r.PathValue("name"))
	if err == nil {
		err = a.private(r, r.PathValue("name"))
	}
	if err != nil {
		a.fail(w, r, err)
		return
	}
	answer := RevisionList{Revisions: []Agent{}}
	for _, one := range all {
		answer.Revisions = append(answer.Revisions, revision(one))
	}
	access.Answer(w, http.StatusOK, answer)
}

// restore is [Roster.Restore] of what a request says.
func restore(r *Roster, ctx context.Context, by Author, name string, body []byte) (Revision, error) {
	var order RestoreOrder
	if err := json.Unmarshal(body, &order); err != nil {
		return Revision{}, refuse(Invalid, "agents/no-json")
	}
	return r.Restore(ctx, by, name, order.Rev)
}

// changing serves a change, and answers with the agent as it is then.
func (a *API) changing(act string, do func(r *Roster, ctx context.Context, by Author, name string, body []byte) (Revision, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := a.Guard.Body(w, r)
		if !ok {
			return
		}
		name, person := r.PathValue("name"), access.PersonOf(r)
		by := Author{Name: person.Name, Note: r.URL.Query().Get("note")}
		_, err := do(a.Roster, r.Context(), by, name, body)
		a.Guard.Did(r, act, name, err)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.show(w, r)
	}
}

func (a *API) remove(w http.ResponseWriter, r *http.Request) {
	if err := a.Delete(r, r.PathValue("name")); err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, struct{}{})
}

func (a *API) assign(w http.ResponseWriter, r *http.Request) {
	body, ok := a.Guard.Body(w, r)
	if !ok {
		return
	}
	order := DeviceAgent{}
	err := json.Unmarshal(body, &order)
	if err != nil {
		a.fail(w, r, refuse(Invalid, "agents/no-json"))
		return
	}
	order.Device = a.Device(r.PathValue("id"))
	if err = a.private(r, order.Agent); err == nil {
		err = a.Roster.Assign(r.Context(), order.Device, order.Agent)
	}
	a.Guard.Did(r, "device.agent", order.Device, err)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, order)
}

// fail answers with what an error says.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	refusal, ok := errors.AsType[*RefusalError](err)
	if !ok {
		a.Guard.Fail(w, r, err)
		return
	}
	status := map[Kind]int{
		Missing: http.StatusNotFound, Invalid: http.StatusBadRequest, Conflict: http.StatusConflict, Full: http.StatusConflict,
		Unwritten: http.StatusInsufficientStorage,
	}[refusal.Kind]
	access.Refuse(w, status, "agents", refusal.Text)
}
