package gateway

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 1 << 20

// DeviceAPI returns the handler of /api/devices, which lists devices and their tools
// and calls them. Access and limits are those of the gateway.
func (g *Gateway) DeviceAPI(d offer.Devices) http.Handler {
	a := &deviceAPI{devices: d, runner: g.runner, log: g.log}
	return g.guard.before(a.handler(), a.fail)
}

// ForOwner returns next behind access control: the owner alone is let in, and programs
// that may do what the owner may.
func (g *Gateway) ForOwner(next http.Handler) http.Handler {
	a := &deviceAPI{log: g.log}
	return g.guard.before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !catalog.CallerFrom(r.Context()).Administers() {
			a.fail(w, http.StatusForbidden, "gateway/owner-only")
			return
		}
		next.ServeHTTP(w, r)
	}), a.fail)
}

// deviceAPI serves /api/devices, behind access control.
type deviceAPI struct {
	devices offer.Devices
	runner  *catalog.Runner // keeps what was called
	log     *slog.Logger
	calls   atomic.Int64
}

func (a *deviceAPI) fail(w http.ResponseWriter, status int, id string, args ...any) {
	reply(w, status, struct {
		Error   string `json:"error"`   // in English
		Message string `json:"message"` // in both languages
	}{message.In(text.English, id, args...), catalog.Both(id, args...)})
}

func (a *deviceAPI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/devices", a.list)
	mux.HandleFunc("GET /api/devices/{id}/tools", a.tools)
	mux.HandleFunc("GET /api/devices/{id}/calls", a.records)
	mux.HandleFunc("POST /api/devices/{id}/tools/call", a.call)
	mux.HandleFunc("/api/devices/", func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, http.StatusNotFound, "gateway/path-unknown-at", r.Method+" "+r.URL.Path)
	})
	return mux
}

func (a *deviceAPI) list(w http.ResponseWriter, r *http.Request) {
	out := offer.DeviceList{Devices: []offer.Device{}}
	for _, d := range a.devices.List() {
		if mayReach(r, d.ID) {
			out.Devices = append(out.Devices, d)
		}
	}
	reply(w, http.StatusOK, out)
}

// mayReach reports whether the caller of a request may see a device.
func mayReach(r *http.Request, id string) bool {
	return catalog.CallerFrom(r.Context()).Sees(catalog.StreamOf(id))
}

// ToolView is a tool as GET /api/devices/{id}/tools shows it.
type ToolView struct {
	Name        string          `json:"name"`     // what its source calls it
	LLMName     string          `json:"llm_name"` // what the model calls it; "": it is for people
	Source      string          `json:"source"`
	Origin      mcp.Origin      `json:"origin"`
	Kind        mcp.Kind        `json:"kind"`
	Why         string          `json:"why"` // it has that kind
	Job         bool            `json:"job,omitempty"`
	TimeoutMS   int64           `json:"timeout_ms"` // of one call
	Consent     bool            `json:"consent,omitempty"`
	ForPeople   bool            `json:"for_people,omitempty"` // the model is not offered it: people call it
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// ToolList is the answer to GET /api/devices/{id}/tools.
type ToolList struct {
	Device string     `json:"device"`
	Tools  []ToolView `json:"tools"`
}

func (a *deviceAPI) tools(w http.ResponseWriter, r *http.Request) {
	id, offers, ok := a.find(w, r)
	if !ok {
		return
	}
	out := ToolList{Device: id, Tools: []ToolView{}}
	add := func(o router.Offer, forPeople bool) {
		out.Tools = append(out.Tools, ToolView{
			Name: o.Tool.Name, LLMName: o.LLMName, Source: o.Tool.Source, Origin: o.Tool.Origin, Kind: o.Kind, Why: o.Why,
			Job: o.Job, TimeoutMS: o.Limit.Milliseconds(), Consent: o.Consent, ForPeople: forPeople, Description: o.Tool.Description, InputSchema: o.Tool.Schema,
		})
	}
	for _, o := range offers {
		add(o, false)
	}
	if catalog.CallerFrom(r.Context()).Administers() {
		for _, o := range a.forPeople(id) {
			add(o, true)
		}
	}
	reply(w, http.StatusOK, out)
}

// forPeople returns the tools of a device that are hidden from its model for that alone that people are to call them.
func (a *deviceAPI) forPeople(id string) (out []router.Offer) {
	all, _ := a.devices.Survey(id)
	for _, l := range all {
		if l.Hidden == router.ForPeople {
			out = append(out, l.Offer)
		}
	}
	return out
}

// meant returns what is called by a name: a tool that the model is offered, else one for people.
func (a *deviceAPI) meant(id string, offers []router.Offer, name string) (tool router.Offer, forPeople, there bool) {
	named := func(o router.Offer) bool { return o.Tool.Name == name || o.LLMName == name }
	if i := slices.IndexFunc(offers, named); i >= 0 {
		return offers[i], false, true
	}
	people := a.forPeople(id)
	if i := slices.IndexFunc(people, named); i >= 0 {
		return people[i], true, true
	}
	return router.Offer{}, false, false
}

func (a *deviceAPI) records(w http.ResponseWriter, r *http.Request) {
	id := strings.ToLower(r.PathValue("id"))
	calls := a.devices.Calls(id)
	if calls == nil || !mayReach(r, id) {
		calls = []router.Record{}
	}
	reply(w, http.StatusOK, struct {
		Device string          `json:"device"`
		Calls  []router.Record `json:"calls"`
	}{id, calls})
}

// CallRequest is the body of POST /api/devices/{id}/tools/call.
type CallRequest struct {
	Name      string          `json:"name"` // the tool's own name, or the model's; of one that is for people its own
	Arguments json.RawMessage `json:"arguments"`
}

// CallResult is the answer to it.
type CallResult struct {
	Name    string `json:"name"`
	Action  string `json:"action"` // a word of [mcp.Action]
	Result  any    `json:"result"`
	Say     any    `json:"response,omitempty"` // what would be spoken
	IsError bool   `json:"isError"`
	Took    int64  `json:"took_ms"`
}

// call runs one tool and waits for its true result, also of a control.
func (a *deviceAPI) call(w http.ResponseWriter, r *http.Request) {
	id, offers, ok := a.find(w, r)
	if !ok {
		return
	}
	var req CallRequest
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(bodyTime)) // recorders have none
	if err := decodeOne(http.MaxBytesReader(w, r.Body, maxBody), &req); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			a.fail(w, http.StatusRequestEntityTooLarge, "gateway/body-large", strconv.Itoa(maxBody))
			return
		}
		a.fail(w, http.StatusBadRequest, "gateway/body-no-call", catalog.OneLine(err))
		return
	}
	if req.Name == "" {
		a.fail(w, http.StatusBadRequest, "gateway/tool-not-given")
		return
	}
	tool, forPeople, there := a.meant(id, offers, req.Name)
	switch {
	case !there:
		a.fail(w, http.StatusNotFound, "gateway/tool-none", strconv.Quote(catalog.Clip(req.Name)))
		return
	case forPeople && !catalog.CallerFrom(r.Context()).Administers():
		a.fail(w, http.StatusForbidden, "gateway/tool-for-people", strconv.Quote(catalog.Clip(req.Name)))
		return
	}
	_ = deadlines.SetReadDeadline(time.Time{}) // else it would end the request while the tool runs
	began := time.Now()
	call := mcp.Call{
		ID: "api_" + strconv.FormatInt(a.calls.Add(1), 10), Name: tool.LLMName,
		Arguments: string(req.Arguments), Language: a.language(r, id),
	}
	if forPeople {
		call.Name, call.Person = tool.Tool.Name, true
	}
	response, _ := a.devices.Call(r.Context(), id, call)
	a.runner.Note(r.Context(), catalog.JoinName(catalog.StreamOf(id), req.Name), !response.Action.Failed())
	took := time.Since(began)
	who := catalog.CallerFrom(r.Context())
	a.log.Info("outward call", "token", who.Name(), "remote", who.Remote, "via", who.Via, "tool", catalog.JoinName(catalog.StreamOf(id), req.Name), "call_id", call.ID,
		"outcome", response.Action.String(), "took", took)
	reply(w, http.StatusOK, CallResult{
		Name: req.Name, Action: response.Action.String(), Result: response.Result, Say: response.Response,
		IsError: response.Action.Failed(),
		Took:    took.Milliseconds(),
	})
}

// language returns the language that a client names in Accept-Language, else the
// device's.
func (a *deviceAPI) language(r *http.Request, id string) string {
	wanted := strings.ToLower(strings.TrimSpace(r.Header.Get("Accept-Language")))
	for _, lang := range []string{"zh", "en"} {
		if strings.HasPrefix(wanted, lang) {
			return lang
		}
	}
	for _, d := range a.devices.List() {
		if d.ID == id && d.Language != "" {
			return d.Language
		}
	}
	return "zh"
}

// find returns the device that the path names, or answers that there is none.
func (a *deviceAPI) find(w http.ResponseWriter, r *http.Request) (string, []router.Offer, bool) {
	id := strings.ToLower(r.PathValue("id"))
	offers, ok := a.devices.Offers(id)
	if ok = ok && mayReach(r, id); !ok {
		a.fail(w, http.StatusNotFound, "gateway/device-none", strconv.Quote(catalog.Clip(id)))
	}
	return id, offers, ok
}
