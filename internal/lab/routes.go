package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// API serves a lab to people and their programs.
type API struct {
	Lab   *Lab
	Guard *access.Guard
	// Device returns the one spelling of a device's id.
	Device func(typed string) string
	// DeviceOwner returns the id of the account that a device belongs to; "": nobody's.
	DeviceOwner func(ctx context.Context, device string) (string, error)
	// MayUse returns an error if the one who asks may not know of an agent.
	MayUse func(r *http.Request, agent string) error
}

// VoicesOrder is the body of POST /api/v1/voices.
type VoicesOrder struct {
	Sentence string  `json:"sentence"`
	Voices   []Voice `json:"voices"`
}

// Begun is the answer to what begins a run.
type Begun struct {
	Run      string    `json:"run"`
	Estimate *Estimate `json:"estimate,omitempty"`
}

// Routes declare who may do what: members try turns and agents of their own devices, owners of all. A nil API has none.
func (a *API) Routes() []access.Route {
	if a == nil {
		return nil
	}
	own := account.Need{Role: account.Member, Scope: account.Admin, Own: true}
	look := account.Need{Role: account.Member, Scope: account.Read}
	try := account.Need{Role: account.Member, Scope: account.Admin}
	of := func(need account.Need, pattern string, owner func(*http.Request) (string, error), f func(http.ResponseWriter, *http.Request) error) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: need, Owner: owner, Handler: a.handle(f)}
	}
	stream := of(look, "GET /api/v1/runs/{id}/stream", nil, a.stream)
	stream.Use = access.Stream
	return []access.Route{
		of(own, "POST /api/v1/turns/{id}/replay", a.turnOwner, a.replay),
		of(own, "POST /api/v1/devices/{id}/compare", a.deviceOwner, a.compare),
		of(own, "POST /api/v1/devices/{id}/estimate", a.deviceOwner, a.estimate),
		of(own, "POST /api/v1/devices/{id}/prompt", a.deviceOwner, a.prompt),
		of(try, "POST /api/v1/voices", nil, a.voices),
		of(look, "GET /api/v1/runs/{id}", nil, a.show),
		stream,
		of(try, "DELETE /api/v1/runs/{id}", nil, a.cancel),
		of(look, "GET /api/v1/sounds/{id}", nil, a.sound),
		of(look, "GET /api/v1/costs", nil, a.costs),
	}
}

// handle answers for what a handler says went wrong.
func (a *API) handle(f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := f(w, r)
		if err == nil {
			return
		}
		if errors.Is(err, store.ErrNotFound) {
			err = refuse(Missing, "lab/no-turn")
		}
		refusal, ok := errors.AsType[*RefusalError](err)
		if !ok {
			a.Guard.Fail(w, r, err)
			return
		}
		status := map[Kind]int{Missing: http.StatusNotFound, Invalid: http.StatusBadRequest, Busy: http.StatusConflict}[refusal.Kind]
		access.Refuse(w, status, "lab", refusal.Text)
	}
}

// body reads the body of a request.
func body[T any](a *API, w http.ResponseWriter, r *http.Request) (order T, ok bool, err error) {
	data, ok := a.Guard.Body(w, r)
	if ok && json.Unmarshal(data, &order) != nil {
		return order, false, refuse(Invalid, "lab/no-json")
	}
	return order, ok, nil
}

// Person names who asks, for what is theirs alone. The admin token is one person.
func Person(r *http.Request) string { return cmp.Or(access.PersonOf(r).ID, "admin") }

func (a *API) deviceOwner(r *http.Request) (string, error) {
	return a.DeviceOwner(r.Context(), a.Device(r.PathValue("id")))
}

func (a *API) turnOwner(r *http.Request) (string, error) {
	return a.TurnOwner(r.Context(), r.PathValue("id"))
}

// TurnOwner returns whose the device of a turn is. A turn that is not there is nobody's.
func (a *API) TurnOwner(ctx context.Context, turn string) (string, error) {
	t, _, _, err := a.Lab.o.Turns.Get(ctx, turn)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return a.DeviceOwner(ctx, t.DeviceID)
}

// mayUse looks whether the one who asks may know of the agents of setups.
func (a *API) mayUse(r *http.Request, all ...Setup) error {
	for _, s := range all {
		if s.Agent == "" || a.MayUse == nil {
			continue
		}
		if err := a.MayUse(r, s.Agent); err != nil {
			return refuse(Missing, "agents/none", s.Agent)
		}
	}
	return nil
}

// begun answers that a run has begun, and keeps that in the audit.
func (a *API) begun(w http.ResponseWriter, r *http.Request, act, object string, run *Run, err error) error {
	a.Guard.Did(r, act, object, err)
	if err != nil {
		return err
	}
	access.Answer(w, http.StatusAccepted, Begun{Run: run.ID})
	return nil
}

func (a *API) replay(w http.ResponseWriter, r *http.Request) error {
	order, ok, err := body[ReplayOrder](a, w, r)
	if !ok {
		return err
	}
	if err := a.mayUse(r, order.Setup); err != nil {
		return err
	}
	k, err := a.Lab.Kept(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	run, err := a.Lab.Replay(Person(r), k, order)
	return a.begun(w, r, "turn.replay", k.ID, run, err)
}

// order reads what is to be compared.
func (a *API) order(w http.ResponseWriter, r *http.Request) (order CompareOrder, turns []Kept, ok bool, err error) {
	if order, ok, err = body[CompareOrder](a, w, r); !ok {
		return order, nil, false, err
	}
	order.Device = a.Device(r.PathValue("id"))
	if err = a.mayUse(r, order.A, order.B); err == nil {
		turns, err = a.Lab.Last(r.Context(), order)
	}
	return order, turns, err == nil, err
}

func (a *API) compare(w http.ResponseWriter, r *http.Request) error {
	order, turns, ok, err := a.order(w, r)
	if !ok {
		return err
	}
	run, err := a.Lab.Compare(Person(r), order, turns)
	return a.begun(w, r, "device.compare", order.Device, run, err)
}

func (a *API) estimate(w http.ResponseWriter, r *http.Request) error {
	order, turns, ok, err := a.order(w, r)
	if !ok {
		return err
	}
	e, err := a.Lab.Estimate(r.Context(), order, turns)
	if err == nil {
		access.Answer(w, http.StatusOK, e)
	}
	return err
}

func (a *API) prompt(w http.ResponseWriter, r *http.Request) error {
	order, ok, err := body[PromptOrder](a, w, r)
	if !ok {
		return err
	}
	order.Device = a.Device(r.PathValue("id"))
	if err := a.mayUse(r, order.Setup); err != nil {
		return err
	}
	p, err := a.Lab.Prompt(r.Context(), order)
	if err == nil {
		access.Answer(w, http.StatusOK, p)
	}
	return err
}

func (a *API) voices(w http.ResponseWriter, r *http.Request) error {
	order, ok, err := body[VoicesOrder](a, w, r)
	if !ok {
		return err
	}
	run, err := a.Lab.Voices(Person(r), order.Sentence, order.Voices)
	return a.begun(w, r, "voices.compare", "", run, err)
}

// run finds the run that a request names, and the row from which on it is wanted.
func (a *API) run(r *http.Request) (run *Run, after int, err error) {
	if after, err = strconv.Atoi(cmp.Or(r.URL.Query().Get("after"), "0")); err != nil || after < 0 {
		return nil, 0, refuse(Invalid, "lab/after")
	}
	run, err = a.Lab.Find(Person(r), r.PathValue("id"))
	return run, after, err
}

func (a *API) show(w http.ResponseWriter, r *http.Request) error {
	run, after, err := a.run(r)
	if err != nil {
		return err
	}
	s, _ := run.Snapshot(after)
	access.Answer(w, http.StatusOK, s)
	return nil
}

// stream answers with a line of JSON for each change of a run, each with the rows that are new, until it is over.
func (a *API) stream(w http.ResponseWriter, r *http.Request) error {
	run, after, err := a.run(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, control := json.NewEncoder(w), http.NewResponseController(w)
	for {
		s, changed := run.Snapshot(after)
		after += len(s.Rows)
		_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second)) // not every connection has one
		if out.Encode(s) != nil || control.Flush() != nil || s.State != Running {
			return nil // the other end is gone, or all is said
		}
		_ = control.SetWriteDeadline(time.Time{}) // by HTTP/2 it would end a stream that has nothing to tell
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		}
	}
}

func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	run, _, err := a.run(r)
	if err != nil {
		return err
	}
	run.Cancel()
	access.Answer(w, http.StatusOK, struct{}{})
	return nil
}

func (a *API) sound(w http.ResponseWriter, r *http.Request) error {
	wav, err := a.Lab.Sound(Person(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "audio/wav")
	h.Set("Content-Length", strconv.Itoa(len(wav)))
	_, _ = w.Write(wav) // the other end may be gone
	return nil
}

// costs sums up the turns of a month, or from=2026-11-01 until the end of to=2026-11-30: of all devices, or of one. Who owns
// no more is told of their own.
func (a *API) costs(w http.ResponseWriter, r *http.Request) error {
	query, zone, now := r.URL.Query(), a.Lab.o.Zone(), time.Now()
	q := store.CostQuery{From: now.AddDate(0, -1, 0), To: now.Add(time.Minute)}
	for key, at := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		text := query.Get(key)
		if text == "" {
			continue
		}
		day, err := time.ParseInLocation(time.DateOnly, text, zone)
		if err != nil {
			return refuse(Invalid, "lab/day", text)
		}
		if *at = day; key == "to" {
			*at = day.AddDate(0, 0, 1)
		}
	}
	if id := query.Get("device"); id != "" {
		q.DeviceID = a.Device(id)
	}
	if p := access.PersonOf(r); p.Role != account.Owner {
		q.OwnerID = Person(r)
	}
	c, err := a.Lab.Costs(r.Context(), q)
	if err == nil {
		access.Answer(w, http.StatusOK, c)
	}
	return err
}
