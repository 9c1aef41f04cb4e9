package homeassistant

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Thing is an entity of the house.
type Thing struct {
	ID, Area, State string
	Attributes      map[string]any // friendly_name, device_class and the like
}

// House is a fake of Home Assistant's REST interface: templates that list entities with their areas, states, services. Its methods
// may be called at the same time.
type House struct {
	*Fake

	// what follows is under the lock of the fake
	things map[string]Thing
	user   bool          // the token is of no administrator
	slow   time.Duration // that services take
	calls  []Call
}

// Call is a service that was called.
type Call struct {
	Service string // light.turn_on
	Data    map[string]any
}

// NewHouse starts the server of a house with these things.
func NewHouse(t testing.TB, things ...Thing) *House {
	t.Helper()
	h := &House{Fake: &Fake{talks: map[string]int{}}, things: map[string]Thing{}}
	for _, thing := range things {
		h.things[thing.ID] = thing
	}
	h.Server = servicetest.New(t, h.serve, servicetest.WrongKey, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return h
}

// Put adds a thing, or changes it.
func (h *House) Put(thing Thing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.things[thing.ID] = thing
}

// Plain makes the token that of a user who is no administrator.
func (h *House) Plain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.user = true
}

// Take has services take so long.
func (h *House) Take(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = d
}

// Calls returns the services that were called so far, in order.
func (h *House) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// State returns the state of a thing.
func (h *House) State(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.things[id].State
}

func (h *House) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	h.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	fault := h.Fault()
	at, isState := strings.CutPrefix(r.URL.Path, "/api/states")
	service, isService := strings.CutPrefix(r.URL.Path, "/api/services/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+servicetest.Key || fault == servicetest.WrongKey:
		h.Refuse(w, http.StatusUnauthorized, "401: Unauthorized", "Content-Type", "text/plain; charset=utf-8")
	case err != nil:
		h.Refuse(w, http.StatusBadRequest, `{"message":"Invalid JSON specified."}`)
	case r.URL.Path == "/api/template" && r.Method == http.MethodPost:
		h.template(w, r, body)
	case isState && r.Method == http.MethodGet:
		h.states(w, r, strings.TrimPrefix(at, "/"))
	case isService && r.Method == http.MethodPost:
		h.service(w, r, service, body)
	default:
		http.NotFound(w, r)
	}
}

// template renders the one kind of template that the fake knows: a list of entities as JSON.
func (h *House) template(w http.ResponseWriter, r *http.Request, body []byte) {
	var q struct {
		Template string `json:"template"`
	}
	h.mu.Lock()
	plain := h.user
	var list []map[string]any
	for _, id := range slices.Sorted(maps.Keys(h.things)) {
		t := h.things[id]
		text := func(key string) string { s, _ := t.Attributes[key].(string); return s }
		list = append(list, map[string]any{"id": id, "name": text("friendly_name"), "area": t.Area, "state": t.State, "class": text("device_class"), "unit": text("unit_of_measurement")})
	}
	h.mu.Unlock()
	switch err := json.Unmarshal(body, &q); {
	case plain:
		h.Refuse(w, http.StatusUnauthorized, "401: Unauthorized", "Content-Type", "text/plain; charset=utf-8")
	case err != nil:
		h.Refuse(w, http.StatusBadRequest, `{"message":"Invalid JSON specified."}`)
	case !strings.Contains(q.Template, "area_name") || !strings.Contains(q.Template, "to_json"):
		h.Refuse(w, http.StatusBadRequest, `{"message":"Error rendering template: TemplateSyntaxError"}`)
	default:
		h.send(w, r, list, "text/plain; charset=utf-8")
	}
}

func (h *House) send(w http.ResponseWriter, r *http.Request, answer any, kind string) {
	raw, _ := json.Marshal(answer) // it can be encoded
	h.Send(w, r, h.Fault(), servicetest.Reply{Type: kind, Body: raw, Broken: []byte(`[{"entity_id": "li`), Filler: []byte(" ")})
}

// shown is a thing as the interface shows it.
func (t Thing) shown() map[string]any {
	return map[string]any{
		"entity_id": t.ID, "state": t.State, "attributes": t.Attributes, "last_changed": "2026-11-24T07:04:00+00:00", "last_updated": "2026-11-24T07:04:00+00:00",
		"context": map[string]any{"id": "01JP8YT", "parent_id": nil, "user_id": nil},
	}
}

func (h *House) states(w http.ResponseWriter, r *http.Request, id string) {
	h.mu.Lock()
	t, known := h.things[id]
	all := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(h.things)) {
		all = append(all, h.things[id].shown())
	}
	h.mu.Unlock()
	switch {
	case id == "":
		h.send(w, r, all, "application/json")
	case !known:
		h.Refuse(w, http.StatusNotFound, `{"message":"Entity not found."}`)
	default:
		h.send(w, r, t.shown(), "application/json")
	}
}

// service changes the states of things as a real house would.
func (h *House) service(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	domain, name, _ := strings.Cut(path, "/")
	var data map[string]any
	err := json.Unmarshal(body, &data)
	ids, _ := data["entity_id"].([]any)
	h.mu.Lock()
	slow := h.slow
	h.mu.Unlock()
	if err != nil || !h.knows(domain, name) || len(ids) == 0 {
		h.Refuse(w, http.StatusBadRequest, "400: Bad Request", "Content-Type", "text/plain; charset=utf-8")
		return
	}
	if slow > 0 && !h.Wait(r.Context(), slow) {
		return
	}
	h.mu.Lock()
	h.calls = append(h.calls, Call{domain + "." + name, data})
	changed := []map[string]any{}
	for _, id := range ids {
		id, _ := id.(string)
		t, known := h.things[id]
		if !known || t.State == "unavailable" {
			continue // it is passed over without a word
		}
		if to := after(name); to != "" && t.State != to {
			t.State = to
			h.things[id] = t
			changed = append(changed, t.shown())
		}
	}
	h.mu.Unlock()
	h.send(w, r, changed, "application/json")
}

// knows reports whether there is a service.
func (h *House) knows(domain, name string) bool {
	return slices.Contains(map[string][]string{
		"light": {"turn_on", "turn_off"}, "switch": {"turn_on", "turn_off"}, "input_boolean": {"turn_on", "turn_off"}, "scene": {"turn_on"}, "script": {"turn_on", "turn_off"},
		"fan": {"turn_on", "turn_off", "set_percentage", "increase_speed", "decrease_speed"}, "cover": {"open_cover", "close_cover", "set_cover_position"},
		"climate":      {"turn_on", "turn_off", "set_temperature", "set_hvac_mode"},
		"media_player": {"turn_on", "turn_off", "media_play", "media_pause", "media_stop", "media_next_track", "media_previous_track", "volume_set", "volume_up", "volume_down"},
	}[domain], name)
}

// after returns the state of a thing after a service; "": as it was.
func after(service string) string {
	return map[string]string{
		"turn_on": "on", "turn_off": "off", "open_cover": "open", "close_cover": "closed", "media_play": "playing", "media_pause": "paused", "media_stop": "idle",
	}[service]
}
