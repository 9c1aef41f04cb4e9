package tools

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/toolcount"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/schema"
	"xiaozhi/store"
)

// Tool is a tool for programs.
type Tool struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`               // what its source calls it
	LLMName     string          `json:"llm_name,omitempty"` // what the model calls it; missing: it is not offered
	Source      string          `json:"source"`
	Device      string          `json:"device,omitempty"` // that runs it
	Kind        mcp.Kind        `json:"kind"`
	Why         string          `json:"why"` // it has that kind
	Job         bool            `json:"job,omitempty"`
	TimeoutMS   int64           `json:"timeout_ms"`       // of one call
	Asks        string          `json:"asks,omitempty"`   // why somebody must say yes first
	Hidden      string          `json:"hidden,omitempty"` // why it is not offered
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// List is the answer to GET /api/v1/tools.
type List struct {
	Tools []Tool `json:"tools"`
	After string `json:"after,omitempty"` // asks for the next page
}

// Order is the body of a call.
type Order struct {
	Arguments json.RawMessage `json:"arguments"`
	Sure      bool            `json:"sure"` // without a device: a tool that needs a yes is run
}

// Outcome is the answer to a call.
type Outcome struct {
	OK       bool   `json:"ok"`
	Text     string `json:"text"`
	Pictures int    `json:"pictures,omitempty"`
	TookMS   int64  `json:"took_ms"`
}

// Call is one that was kept.
type Call struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Device    string    `json:"device,omitempty"`
	Turn      string    `json:"turn,omitempty"`
	Caller    string    `json:"caller"`
	Tool      string    `json:"tool"`
	Source    string    `json:"source,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Arguments string    `json:"arguments,omitempty"` // JSON
	Result    string    `json:"result,omitempty"`
	Fault     string    `json:"fault,omitempty"`
	Refusal   string    `json:"refusal,omitempty"` // why it was not made
	Late      bool      `json:"late,omitempty"`    // it failed after its success was assumed
	TookMS    int64     `json:"took_ms"`

	ArgumentsDigest string `json:"arguments_digest,omitempty"`
	ResultDigest    string `json:"result_digest,omitempty"`
}

// Calls is the answer to GET /api/v1/tools/calls.
type Calls struct {
	Calls  []Call `json:"calls"`
	Before string `json:"before,omitempty"` // asks for the next page
}

// Server is one of other people's servers of tools.
type Server struct {
	Name      string             `json:"name"`
	From      string             `json:"from"`
	Transport external.Transport `json:"transport,omitempty"`
	Where     string             `json:"where,omitempty"`
	Device    string             `json:"device,omitempty"`
	Phase     external.Phase     `json:"phase"`
	Since     time.Time          `json:"since,omitzero"`
	About     string             `json:"about,omitempty"`
	Tools     int                `json:"tools"`
	Listed    int                `json:"listed"`
	Restarts  int                `json:"restarts"`
	Trouble   external.Trouble   `json:"trouble,omitempty"`
	Error     string             `json:"error,omitempty"`
	Lines     []string           `json:"lines,omitempty"`
}

// Tried is the outcome of a test of a server.
type Tried struct {
	OK     bool   `json:"ok"`
	Tools  int    `json:"tools"`
	TookMS int64  `json:"took_ms"`
	Error  string `json:"error,omitempty"`
}

// programs serve programs.
type programs struct {
	*Desk
	guard *access.Guard
}

// Programs are the routes for programs.
func (d *Desk) Programs(guard *access.Guard) []access.Route {
	p := programs{d, guard}
	whose := func(r *http.Request) (string, error) {
		return d.from.DeviceOwner(r.Context(), d.from.DeviceID(r.PathValue("id")))
	}
	of := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		route := access.Route{Pattern: pattern, For: access.People, Need: need, Handler: h}
		if need.Own {
			route.Owner = whose
		}
		return route
	}
	look := account.Need{Role: account.Member, Scope: account.Read}
	owner := account.Need{Role: account.Owner, Scope: account.Admin}
	return []access.Route{
		of("GET /api/v1/tools", look, p.list),
		of("POST /api/v1/tools/{tool}/call", account.Need{Role: account.Owner, Scope: account.Tools}, p.call),
		of("POST /api/v1/devices/{id}/tools/{tool}/call", account.Need{Role: account.Member, Scope: account.Tools, Own: true}, p.call),
		of("GET /api/v1/tools/calls", look, p.calls),
		of("GET /api/v1/tools/counts", account.Need{Role: account.Viewer, Scope: account.Read}, p.counts),
		of("GET /api/v1/tools/servers", owner, p.servers),
		of("POST /api/v1/tools/servers/{name}/test", owner, p.test),
		of("POST /api/v1/tools/servers/{name}/restart", owner, p.restart),
	}
}

// fail answers why something was not done.
func (p programs) fail(w http.ResponseWriter, r *http.Request, err error) {
	for known, f := range map[error]struct {
		status int
		id     string
	}{
		errNoTool:                 {http.StatusNotFound, "api/no-tool"},
		errNoServer:               {http.StatusNotFound, "api/no-tool-server"},
		errNotOffered:             {http.StatusConflict, "api/tool-not-offered"},
		errUnsure:                 {http.StatusConflict, "api/tool-unsure"},
		errBody:                   {http.StatusBadRequest, "api/body"},
		directory.ErrNotConnected: {http.StatusConflict, "app/device-over"},
	} {
		if errors.Is(err, known) {
			access.Refuse(w, f.status, f.id, message.Both(f.id))
			return
		}
	}
	p.guard.Fail(w, r, err)
}

// Errors of requests.
var (
	errNoServer   = errors.New("there is no such server")
	errNotOffered = errors.New("the tool is not offered")
	errUnsure     = errors.New("the tool needs a yes")
	errBody       = errors.New("the body is not as it should be")
)

func (p programs) list(w http.ResponseWriter, r *http.Request) {
	f, err := p.asked(r)
	var l listing
	if err == nil {
		l, err = p.listing(r, f)
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	out := List{Tools: []Tool{}, After: l.Last}
	for _, t := range l.Rows {
		out.Tools = append(out.Tools, Tool{
			ID: idOf(t.Tool), Name: t.Tool.Name, LLMName: t.LLMName, Source: t.Tool.Source, Device: t.Device, Kind: t.Kind, Why: t.Why, Job: t.Job, TimeoutMS: t.Limit.Milliseconds(), Asks: t.Asks,
			Hidden: t.Hidden, Description: t.Tool.Description, InputSchema: schemaOf(t.Tool.Schema),
		})
	}
	access.Answer(w, http.StatusOK, out)
}

// schemaOf returns a schema that is JSON, whatever somebody sent as one.
func schemaOf(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(schema.Empty)
	}
	return raw
}

// call runs a tool, on the device that the path names, within a rate, and keeps it in the audit.
func (p programs) call(w http.ResponseWriter, r *http.Request) {
	device := r.PathValue("id")
	if device != "" {
		device = p.from.DeviceID(device)
	}
	var order Order
	err := read(r, &order)
	var t row
	live := false
	if err == nil {
		t, live, err = p.find(r, device, r.PathValue("tool"))
	}
	switch {
	case err != nil:
	case !live:
		err = directory.ErrNotConnected
	case t.Personal():
		err = access.PersonOf(r).May(account.Need{Role: account.Owner, Scope: account.Admin}, "", time.Now())
	case t.Hidden != "" || t.Tool.NeedsDevice && device == "":
		err = errNotOffered
	case t.Asks != "" && device == "" && !order.Sure:
		err = errUnsure
	}
	if err == nil {
		err = p.pace.Often(access.PersonOf(r).ID, device)
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	a, invalid, err := p.run(r, t, string(order.Arguments), order.Sure)
	outcome := err
	if err == nil {
		outcome = a.outcome()
	}
	p.guard.Did(r, "tool.call", auditName(t), outcome)
	switch {
	case err != nil:
		p.fail(w, r, err)
	case invalid != "":
		access.Refuse(w, http.StatusBadRequest, "api/tool-invalid", message.Both("api/tool-invalid", invalid))
	default:
		access.Answer(w, http.StatusOK, Outcome{OK: !a.Failed, Text: a.Text, Pictures: len(a.Pictures) + a.Left, TookMS: a.Took.Milliseconds()})
	}
}

// read reads the body of a request; none leaves into as it is.
func read(r *http.Request, into any) error {
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil && !errors.Is(err, io.EOF) || in.More() {
		return errBody
	}
	return nil
}

func (p programs) calls(w http.ResponseWriter, r *http.Request) {
	page, err := access.PageOf(r)
	q, who, f := r.URL.Query(), access.PersonOf(r), store.CallFilter{}
	if err == nil {
		f, err = callsAsked(r)
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if device := q.Get("device"); device != "" {
		f.Device = p.from.DeviceID(device)
	}
	if f.Source == "external" {
		f.Source += ":"
	}
	if !who.Is(account.Owner) {
		f.Owner = who.ID
	}
	found, err := p.from.FindCalls(r.Context(), f, page)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	out := Calls{Calls: []Call{}}
	for i := range found.Calls {
		c := &found.Calls[i]
		out.Calls = append(out.Calls, Call{
			ID: c.ID, At: c.At, Device: c.DeviceID, Turn: c.TurnID, Caller: c.Caller, Tool: c.Name, Source: c.Source, Kind: c.Kind, Arguments: c.Arguments, Result: c.Result,
			Fault: c.Fault, Refusal: c.Refusal, Late: c.Late, TookMS: c.Took.Milliseconds(), ArgumentsDigest: c.ArgumentsDigest, ResultDigest: c.ResultDigest,
		})
	}
	if found.Next != (store.Cursor{}) {
		out.Before = access.Before(found.Next.At, found.Next.ID)
	}
	access.Answer(w, http.StatusOK, out)
}

func (p programs) counts(w http.ResponseWriter, _ *http.Request) {
	access.Answer(w, http.StatusOK, struct {
		Sources []toolcount.Count `json:"sources"`
	}{p.from.Counts()})
}

func (p programs) servers(w http.ResponseWriter, _ *http.Request) {
	all := struct {
		Servers []Server `json:"servers"`
	}{[]Server{}}
	for _, s := range p.from.Servers() {
		all.Servers = append(all.Servers, Server{
			Name: s.Name, From: s.From, Transport: s.Transport, Where: s.Where, Device: s.Device, Phase: s.Phase, Since: s.Since, About: s.About, Tools: s.Tools,
			Listed: s.Listed, Restarts: s.Restarts, Trouble: s.Trouble, Error: s.Error, Lines: s.Lines,
		})
	}
	access.Answer(w, http.StatusOK, all)
}

// known reports whether there is a server of a name.
func (p programs) known(name string) bool {
	for _, s := range p.from.Servers() {
		if s.Name == name {
			return true
		}
	}
	return false
}

func (p programs) test(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	err := p.pace.Often(access.PersonOf(r).ID, "servers")
	if err == nil && !p.known(name) {
		err = errNoServer
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), testTime, errTestTime)
	defer cancel()
	took, n, err := p.from.TestServer(ctx, name)
	p.guard.Did(r, "tool-server.test", name, err)
	t := Tried{OK: err == nil, Tools: n, TookMS: took.Milliseconds()}
	if err != nil {
		t.Error = err.Error()
	}
	access.Answer(w, http.StatusOK, t)
}

func (p programs) restart(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	err := p.pace.Often(access.PersonOf(r).ID, "servers")
	if err == nil && p.from.RestartServer(name) != nil {
		err = errNoServer
	}
	p.guard.Did(r, "tool-server.restart", name, err)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, struct{}{})
}

// CallPrefix begins the ids of calls that people make by a page, or their programs by the routes for those.
const CallPrefix = "person_"

// run calls a tool and waits for its outcome.
func (d *Desk) run(r *http.Request, t row, arguments string, sure bool) (a answer, invalid string, err error) {
	lang := ui.Lang(r)
	info := mcp.Info{Language: string(lang), Hand: access.PersonOf(r).Scopes == nil, Pictures: true}
	ctx, cancel := context.WithTimeout(mcp.WithInfo(r.Context(), info), max(callTime, askTime+t.Limit))
	defer cancel()
	call := mcp.Call{ID: CallPrefix + store.NewID(), Name: t.LLMName, Arguments: arguments, Language: string(lang)}
	if t.Personal() {
		call.Name, call.Person = t.Tool.Name, true
	}
	began := time.Now()
	var response mcp.ActionResponse
	if t.Device == "" {
		response, invalid = d.from.CallHere(ctx, call, sure)
	} else if response, invalid, err = d.from.Call(ctx, t.Device, call); err != nil {
		return a, "", err
	}
	a = answerOf(response.Outcome(string(lang)))
	a.Took = time.Since(began)
	return a, invalid, nil
}
