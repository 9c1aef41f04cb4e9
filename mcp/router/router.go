// Package router runs the tools of one conversation. A [Router] knows the tools
// of every source, names them for a model, checks calls and runs them, those of
// the device one at a time. [Journal] keeps the last calls of each device.
package router

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/schema"
)

// Offer is a tool as the router offers it.
type Offer struct {
	Tool    mcp.Tool
	LLMName string   // [A-Za-z0-9_-]{1,64}, unique in the router, reversible
	Kind    mcp.Kind // decided: never ""
	Why     string   // what decided it, for people
	Job     bool     // the tool says so, or Options.Jobs does
	Consent bool     // the user must say yes first, as the gate says

	Limit time.Duration // of one call, from its sending; never 0
}

// Identity says which tool it is: another one, or one that says something else of itself,
// has another identity, whatever its name.
func (o Offer) Identity() string {
	return strings.Join([]string{o.Tool.Source, o.Tool.Name, o.Tool.Description, string(o.Tool.Schema)}, "\x00")
}

// Prepared is a call that was looked up and checked, ready to be run once.
type Prepared struct {
	Call      mcp.Call
	Offer     Offer
	Arguments map[string]any // coerced to the schema, valid against it
	Info      mcp.Info       // of the turn, for Go; Run takes it from its ctx
	Invalid   string         // why the arguments cannot be used; "" if that is not what was refused
	source    mcp.Source
	verdict   Verdict // of the gate
	refusal   Refusal // why it is not to be made
}

// Asks reports whether the person in front of the device must be asked before the call
// is run; it is not run before [Router.Consent].
func (p Prepared) Asks() bool { return p.verdict.Decision == Asks }

// By names the people who alone may say yes. nil: whoever speaks may.
func (p Prepared) By() []string { return p.verdict.By }

// Options set limits. The zero value works.
type Options struct {
	Rules
	Kinds    map[string]mcp.Kind  // overrides, tool name patterns (path.Match) to kind
	Jobs     []string             // patterns of jobs, as mcp.Fits reads them
	Times    Times                // limits of calls that the settings set
	Words    bool                 // records and the log show the arguments of calls, which hold what was said
	Ended    func(Record, string) // gets the record of each call with what it has brought, from its goroutine; nil: none
	Record   func(Record)         // gets the record of each call, from its goroutine; nil: none
	Describe Describe             // looks at the pictures in results of queries; nil: the model gets none
	Log      *slog.Logger         // nil: discarded
}

// maxKnown bounds the warnings that a router remembers to have given.
const maxKnown = 512

// Router owns the tool calls of one conversation: it knows every source's tools, offers them to the
// model, checks calls and runs them, the device's own one at a time. It does not start or stop its
// sources. All methods may be called at the same time.
type Router struct {
	options Options
	limits  atomic.Pointer[limits]
	narrow  atomic.Pointer[Gate] // of whom the device talks to; nil: all that the settings offer
	log     *slog.Logger
	device  queue           // calls to the device
	life    context.Context // of all calls; ends with Close
	end     context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	sources []mcp.Source
	running map[string]*job // calls of the conversation in flight, by name and arguments
	warned  map[string]struct{}
	closed  bool
}

// New makes a router over sources. Close ends it.
func New(o Options, sources ...mcp.Source) *Router {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	life, end := context.WithCancel(context.Background()) // no caller's: a call may outlive its caller, until Close
	rt := &Router{
		options: o,
		log:     o.Log,
		device:  queue{limit: maxWaiting},
		life:    life,
		end:     end,
		running: make(map[string]*job),
		warned:  make(map[string]struct{}),
	}
	rt.SetLimits(Limits{Rules: o.Rules, Kinds: o.Kinds, Jobs: o.Jobs, Times: o.Times})
	for _, s := range sources {
		rt.Add(s)
	}
	return rt
}

// Add makes a source's tools available. A nil source and one that is there already change nothing.
func (rt *Router) Add(s mcp.Source) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if s != nil && !slices.Contains(rt.sources, s) {
		rt.sources = append(rt.sources, s)
	}
}

// Limits hold the part of the options that may change while the router is used.
type Limits struct {
	Rules
	Kinds map[string]mcp.Kind
	Jobs  []string
	Times Times
}

// limits are Limits with the gate of their rules.
type limits struct {
	Limits
	gate Gate
}

// SetLimits puts other limits in the place of those of the options, from now on. A call that was prepared is run.
func (rt *Router) SetLimits(l Limits) {
	for _, pattern := range slices.Concat(l.Allow, l.Deny, l.Confirm, l.Jobs, slices.Collect(maps.Keys(l.Times))) {
		if _, err := path.Match(pattern, ""); err != nil {
			rt.warnOnce("tool pattern is malformed", "", pattern, slog.Any("err", err))
		}
	}
	rt.limits.Store(&limits{l, NewGate(l.Rules)})
}

// Restrict hides, from now on, what these rules deny or do not allow, beside what the
// settings hide. Later rules replace earlier ones; a call that was prepared is run.
func (rt *Router) Restrict(r Rules) {
	g := NewGate(Rules{Allow: r.Allow, Deny: r.Deny})
	rt.narrow.Store(&g)
}

// Offers returns the tools for the model, without those meant only for people and those
// denied: local, device, IoT, external, each in its source's order. The caller owns the slice.
func (rt *Router) Offers() []Offer {
	placed := rt.placed()
	offers := make([]Offer, len(placed))
	for i, p := range placed {
		offers[i] = p.Offer
	}
	return offers
}

// placedOffer is an offer and where it came from.
type placedOffer struct {
	Offer
	source mcp.Source
}

// placed asks every source for its tools and names them. Nothing is kept, so a
// tool that left is gone and one that came is there.
func (rt *Router) placed() []placedOffer {
	sources := rt.flat()
	lists, count := make([][]mcp.Tool, len(sources)), 0
	for i, s := range sources {
		lists[i] = s.GetAvailableTools()
		count += len(lists[i])
	}
	out := make([]placedOffer, 0, count)
	for i, s := range sources {
		for _, tool := range lists[i] {
			if tool.Name == "" || tool.UserOnly() || rt.limits.Load().gate.Hides(tool, mcp.FunctionName(tool.Name)) {
				continue
			}
			out = append(out, placedOffer{Offer: Offer{Tool: tool}, source: s})
		}
	}
	out = dropUnfit(out)
	slices.SortStableFunc(out, func(a, b placedOffer) int { return rank(a.Tool) - rank(b.Tool) })
	names := make([]string, len(out))
	for i, p := range out {
		names[i] = p.Tool.Name
	}
	for i, name := range mcp.FunctionNames(names) {
		out[i].LLMName = name
		tool := out[i].Tool
		out[i].Kind, out[i].Why = mcp.ExplainKind(tool, rt.limits.Load().Kinds)
		_, job := mcp.FitsTool(rt.limits.Load().Jobs, tool, name, mcp.FunctionName(tool.Name))
		out[i].Job = tool.Job || job
		out[i].Limit = rt.limits.Load().Times.limitOf(out[i].Offer)
		out[i].Consent = rt.decide(out[i].Offer, Case{By: mcp.ByModel}).Decision == Asks
		if name != mcp.FunctionName(names[i]) {
			rt.warnOnce("tool name is taken", out[i].Tool.Source, names[i], slog.String("offered_as", name))
		}
	}
	return slices.DeleteFunc(out, func(o placedOffer) bool { // by the names that were just given
		return rt.decide(o.Offer, Case{By: mcp.ByModel}).Decision == Denied
	})
}

// decide asks the gate about a call of an offer.
func (rt *Router) decide(o Offer, c Case) Verdict {
	c.Tool, c.Names = o.Tool, []string{o.LLMName, mcp.FunctionName(o.Tool.Name)}
	if narrow := rt.narrow.Load(); narrow != nil {
		if why, hidden := narrow.hides(c.Tool, c.Names); hidden {
			return Verdict{Decision: Denied, Why: why, id: "router/denied"}
		}
	}
	return rt.limits.Load().gate.Decide(c)
}

// schema is the compiled schema of a tool; one that is broken stands for any object.
func (rt *Router) schema(tool mcp.Tool) *schema.Schema {
	s, err := schema.Compile(tool.Schema)
	if err != nil {
		rt.warnOnce("tool schema is broken", tool.Source, tool.Name, slog.Any("err", err))
		s, _ = schema.Compile(nil) // never fails
	}
	return s
}

// warnOnce logs a warning about a tool the first time it is met.
func (rt *Router) warnOnce(message, source, tool string, attr slog.Attr) {
	key := message + "\x00" + source + "\x00" + tool
	rt.mu.Lock()
	_, known := rt.warned[key]
	if len(rt.warned) >= maxKnown {
		clear(rt.warned)
	}
	rt.warned[key] = struct{}{}
	rt.mu.Unlock()
	if !known {
		rt.log.Warn(message, slog.String("source", source), slog.String("tool", tool), attr)
	}
}

// Prepare looks a call up and checks its arguments. It returns either a call to run or the outcome
// that says why there is none: NotFound, or an Error that names the argument and what is wrong with
// it, so that a model can repair it. A call that is refused leaves its line and its record here.
func (rt *Router) Prepare(call mcp.Call) (Prepared, *mcp.ActionResponse) {
	p, bad := rt.prepare(call)
	if bad != nil {
		rt.refuse(p, p.refusal, *bad)
	}
	return p, bad
}

// Refuse leaves the record of a call that was prepared and that is not made: nobody has said yes, or a limit of a turn is
// reached. r is what the model is told.
func (rt *Router) Refuse(p Prepared, why Refusal, r mcp.ActionResponse) { rt.refuse(p, why, r) }

func (rt *Router) refuse(p Prepared, why Refusal, r mcp.ActionResponse) {
	(&job{router: rt, call: p, awaited: true, refusal: why}).record(r)
}

func (rt *Router) prepare(call mcp.Call) (Prepared, *mcp.ActionResponse) {
	p := Prepared{Call: call}
	placed := rt.placed()
	i := slices.IndexFunc(placed, func(o placedOffer) bool { return o.LLMName == call.Name })
	if o, ok := rt.forPeople(call); i < 0 && ok {
		placed, i = []placedOffer{o}, 0
	}
	if i < 0 {
		p.Offer.Tool.Name, p.refusal = text.Shorten(call.Name, 128), RefusedUnknown
		return p, &mcp.ActionResponse{Action: mcp.ActionTypeNotFound, Result: message.In(text.Lang(call.Language), "router/no-tool-named", p.Offer.Tool.Name)}
	}
	p.Offer, p.source = placed[i].Offer, placed[i].source
	if p.verdict = rt.decide(p.Offer, Case{By: call.By}); p.verdict.Decision == Denied {
		p.refusal = p.verdict.refusal()
		return p, &mcp.ActionResponse{Action: mcp.ActionTypeError, Result: p.verdict.Refusal(call.Name, text.Lang(call.Language))}
	}
	var dropped []string
	var err error
	p.Arguments, dropped, err = rt.schema(p.Offer.Tool).Read(call.Arguments)
	if len(dropped) > 0 {
		rt.log.Debug("unknown tool arguments dropped", "tool", p.Offer.Tool.Name, "arguments", dropped)
	}
	if err != nil {
		p.Invalid, p.refusal = err.Error(), RefusedInvalid
		return p, &mcp.ActionResponse{
			Action: mcp.ActionTypeError,
			Result: message.In(text.Lang(call.Language), "router/invalid", call.Name, p.Invalid),
		}
	}
	return p, nil
}

// Consent returns a call to which the person in front of the device has just said yes,
// as one that may be run, if that person may. person is their name, known by the voice; "": it
// is not known. Only who has heard the yes may call it.
func (rt *Router) Consent(p Prepared, person string) Prepared {
	p.verdict = rt.decide(p.Offer, Case{By: p.Call.By, Consented: true, Person: person})
	return p
}

// dropUnfit leaves out the tools that are of no use beside the device's tools.
func dropUnfit(offers []placedOffer) []placedOffer {
	var device []mcp.Tool
	conditional := false
	for _, o := range offers {
		conditional = conditional || o.Tool.When != nil
		if o.Tool.OfDevice() {
			device = append(device, o.Tool)
		}
	}
	if !conditional {
		return offers
	}
	fit := offers[:0]
	for _, o := range offers {
		if o.Tool.When == nil || o.Tool.When(device) {
			fit = append(fit, o)
		}
	}
	return fit
}

// rank is the place of a tool's source in the routing order.
func rank(t mcp.Tool) int {
	switch t.Source {
	case "local":
		return 0
	case "device", "light":
		return 1
	case "iot":
		return 2
	}
	return 3
}

// Peer is the device of this router. callID is the id of the call that it is
// needed for; it names the calls to the device in the log.
func (rt *Router) Peer(callID string) mcp.Peer { return peer{rt, callID} }

type peer struct {
	router *Router
	callID string
}

func (p peer) Tools() []mcp.Tool {
	var tools []mcp.Tool
	for _, o := range p.router.placed() {
		if o.Tool.OfDevice() {
			tools = append(tools, o.Tool)
		}
	}
	return tools
}

func (p peer) Call(ctx context.Context, name string, arguments map[string]any) mcp.ActionResponse {
	placed := p.router.placed()
	i := slices.IndexFunc(placed, func(o placedOffer) bool { return o.Tool.OfDevice() && o.Tool.Name == name })
	if i < 0 {
		return mcp.NoPeer{}.Call(ctx, name, arguments)
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "encode arguments: " + err.Error()}
	}
	prepared, refused := p.router.Prepare(mcp.Call{ID: p.callID + "/" + name, Name: placed[i].LLMName, Arguments: string(text), By: mcp.ByTool})
	if refused != nil {
		return *refused
	}
	return p.router.Run(ctx, prepared)
}
