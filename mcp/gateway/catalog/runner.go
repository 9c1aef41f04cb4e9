package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/schema"
)

// Call is one call of a tool.
type Call struct {
	ID        string // for the log
	Arguments string // JSON text; "" means {}
	Language  string // "zh" or "en"
}

// Outcome is the result of a call.
type Outcome struct {
	Response mcp.ActionResponse
	Invalid  string // what is wrong with the arguments; Response is not set
}

// CallTimeout bounds a call whose tool sets no limit.
const CallTimeout = 60 * time.Second

// Errors of calls that were not run.
var (
	ErrReadOnly = errors.New("the token is read-only")
	ErrBusy     = errors.New("too many calls at the same time")
)

// ArgumentError says what is wrong with the arguments of a call.
type ArgumentError struct{ Why string }

// Error returns what is wrong.
func (e *ArgumentError) Error() string { return e.Why }

// Checked returns f as a tool's Do that reads its arguments with a schema first.
func Checked(s *schema.Schema, f func(context.Context, map[string]any) (any, error)) func(context.Context, Call) Outcome {
	return func(ctx context.Context, k Call) Outcome {
		arguments, _, err := s.Read(k.Arguments)
		if err != nil {
			return Outcome{Invalid: err.Error()}
		}
		return Outcome{Response: responseOf(f(ctx, arguments))}
	}
}

// responseOf returns what a tool returned as an [mcp.ActionResponse].
func responseOf(result any, err error) mcp.ActionResponse {
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: Reason(err)}
	}
	switch v := result.(type) {
	case mcp.ActionResponse:
		return v
	case *mcp.ActionResponse:
		if v == nil {
			return mcp.ActionResponse{Action: mcp.ActionTypeNone}
		}
		return *v
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: result}
}

// Reason returns an error in words for the caller of a tool.
func Reason(err error) string {
	if reported, ok := errors.AsType[*mcp.ToolError](err); ok {
		return reported.Error()
	}
	return err.Error()
}

// Runner runs tools for callers, within the limits of the gateway, and logs each
// call. Every call passes the gate: here, or in the router of a device, which can ask
// its user. Its methods may be called at the same time.
type Runner struct {
	// Audit keeps the calls that may change something which programs make for people,
	// and whether they were done. It is set before the first call; nil: nobody does.
	Audit func(ctx context.Context, who Caller, tool string, done bool)
	// Count gets the record of each call that no router has one of. It is set before the first call; nil: nobody does.
	Count func(rec router.Record)

	gate   atomic.Pointer[router.Gate]
	times  atomic.Pointer[router.Times]
	slots  slots
	number atomic.Uint64 // of the last call
	zone   func() *time.Location
	log    *slog.Logger
}

// NewRunner makes a runner. zone returns that of the times that tools tell.
func NewRunner(gate router.Gate, zone func() *time.Location, log *slog.Logger) *Runner {
	r := &Runner{zone: zone, log: log}
	r.SetGate(gate)
	r.SetTimes(nil)
	return r
}

// SetGate asks another gate about calls, from now on.
func (r *Runner) SetGate(gate router.Gate) { r.gate.Store(&gate) }

// SetTimes keeps other limits of calls, from now on.
func (r *Runner) SetTimes(times router.Times) { r.times.Store(&times) }

// limit returns how long a call of a tool may take. One that a router runs has its limit there; here it may wait for others
// too, and for the user's yes.
func (r *Runner) limit(e *Entry) time.Duration {
	limit, pattern := r.times.Load().Of(e.tool, e.names()...)
	switch own := cmp.Or(max(0, e.limit), CallTimeout); {
	case pattern == "":
		return own
	case e.routed:
		return own + limit
	}
	return limit
}

// Close ends all calls. No more are run.
func (r *Runner) Close() { r.slots.closeAll() }

// Run runs a tool for the caller of ctx. req is nil for a call that did not come by
// MCP. The error is [ErrReadOnly], [ErrBusy] or an [*ArgumentError] if the tool was
// not run, or the error that [Tool].Handle returned.
func (r *Runner) Run(ctx context.Context, e *Entry, arguments json.RawMessage, req *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
	who := CallerFrom(ctx)
	began := time.Now()
	id := "out_" + fmt.Sprint(r.number.Add(1))
	refused := ""
	defer func() {
		took := time.Since(began)
		r.log.Info("outward call", "token", who.Name(), "remote", who.Remote, "via", who.Via, "tool", e.name, "call_id", id,
			"outcome", cmp.Or(refused, outcomeWord(result, err)), "took", took)
		why := refusalOf(err)
		if refused != "" {
			why = router.RefusedConsent
		}
		r.count(e, id, why, result, began, took)
		if !e.readOnly() {
			r.audit(ctx, who, e.name, refused == "" && outcomeWord(result, err) == "ok")
		}
	}()
	if !who.calls(e) {
		return nil, ErrReadOnly
	}
	if v := r.decide(e); v.Decision != router.Allowed {
		refused = "refused"
		return failed(v.Refusal(e.name, text.Lang(who.Language))), nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit(e))
	defer cancel()
	release, ok := r.slots.take(who, cancel)
	if !ok {
		return nil, ErrBusy
	}
	defer release()
	if who.Gone != nil {
		defer who.Gone(cancel)() // the call of a caller that left ends
	}
	ctx = mcp.WithInfo(ctx, mcp.Info{Language: who.Language, Zone: r.zone(), Pictures: true})
	if e.do != nil { // others have the protocol at hand themselves
		var stop func()
		ctx, stop = telling(ctx, req)
		defer stop()
	}
	return r.contain(ctx, e, Call{id, string(arguments), who.Language}, req)
}

// count leaves the record of a call that no router has made, or of one that was refused before a router saw it.
func (r *Runner) count(e *Entry, id string, why router.Refusal, result *sdk.CallToolResult, began time.Time, took time.Duration) {
	if r.Count == nil || e.routed && (why == "" || why == router.RefusedInvalid) {
		return
	}
	rec := router.Record{CallID: id, Tool: e.tool.Name, Source: e.tool.Source, Awaited: true, Refusal: why, By: mcp.ByProgram, Outcome: mcp.ActionTypeReqLLM.String()}
	if why == "" {
		rec.Started, rec.Took = began, took
	}
	if why != "" || result == nil || result.IsError {
		rec.Outcome = mcp.ActionTypeError.String()
	}
	r.Count(rec)
}

// refusalOf returns why a call was not made, by its error; "": it was.
func refusalOf(err error) router.Refusal {
	_, invalid := errors.AsType[*ArgumentError](err)
	switch {
	case invalid:
		return router.RefusedInvalid
	case errors.Is(err, ErrReadOnly):
		return router.RefusedDenied
	case errors.Is(err, ErrBusy):
		return router.RefusedBusy
	}
	return ""
}

// audit keeps a call that a program has made for a person.
func (r *Runner) audit(ctx context.Context, who Caller, tool string, done bool) {
	if r.Audit != nil && who.account() != nil {
		r.Audit(context.WithoutCancel(ctx), who, tool, done)
	}
}

// Note keeps a call by a program that another part of the gateway has run, as Run does its own.
func (r *Runner) Note(ctx context.Context, tool string, done bool) {
	r.audit(ctx, CallerFrom(ctx), tool, done)
}

// Running returns the callers with accounts whose calls run.
func (r *Runner) Running() []Caller { return r.slots.callers() }

// EndOf ends the calls of all that came with the same rights of a token.
func (r *Runner) EndOf(of *Account) { r.slots.endOf(of) }

// decide asks the gate about a call of a tool, for whose caller nobody can be asked.
func (r *Runner) decide(e *Entry) router.Verdict {
	if e.routed {
		return router.Verdict{Decision: router.Allowed}
	}
	return r.gate.Load().Decide(router.Case{Tool: e.tool, Names: e.names(), By: mcp.ByProgram})
}

// RefuseUnknown logs the call of a tool that the caller's view does not show.
func (r *Runner) RefuseUnknown(who Caller, name string) {
	r.log.Info("outward call", "token", who.Name(), "remote", who.Remote, "via", who.Via, "tool", Clip(name), "outcome", "unknown")
	if r.Count != nil {
		r.Count(router.Record{Tool: Clip(name), Awaited: true, Refusal: router.RefusedUnknown, By: mcp.ByProgram, Outcome: mcp.ActionTypeNotFound.String()})
	}
}

// contain runs a tool. A panic fails this call only.
func (r *Runner) contain(ctx context.Context, e *Entry, c Call, req *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
	who := CallerFrom(ctx)
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("tool crashed", "tool", e.name, "call_id", c.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = failed(who.Say("gateway/tool-crashed")), nil
		}
	}()
	switch {
	case e.do == nil && req == nil:
		return failed(who.Say("gateway/tool-in-session")), nil
	case e.do == nil:
		return e.handle(ctx, req)
	}
	o := e.do(ctx, c)
	if o.Invalid != "" {
		return nil, &ArgumentError{o.Invalid}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && o.Response.Action == mcp.ActionTypeError {
		o.Response.Result = who.Say("gateway/tool-late")
	}
	return contentOf(o.Response), nil
}

func outcomeWord(result *sdk.CallToolResult, err error) string {
	_, invalid := errors.AsType[*ArgumentError](err)
	switch {
	case errors.Is(err, ErrReadOnly), errors.Is(err, ErrBusy):
		return "refused"
	case invalid:
		return "invalid"
	case err != nil:
		return "error"
	case result != nil && result.IsError:
		return "failed"
	}
	return "ok"
}

// CodeFailed is the code of a tool that ran and failed.
const CodeFailed = "EXECUTION_FAILED"

// Limits of one result.
const (
	maxResultText  = 256 << 10 // bytes of one text; the rest is cut
	maxResultImage = 8 << 20   // bytes of one picture; a larger one is only named
)

// contentOf returns a tool's outcome as MCP has it: a failure is an error result,
// and so is the envelope of one.
func contentOf(r mcp.ActionResponse) *sdk.CallToolResult {
	o := r.Outcome("")
	if envelope := failedEnvelope(o.Value); envelope != nil {
		o.Failed, o.Blocks = true, []any{mcp.TextOf(envelope)}
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{}, IsError: o.Failed}
	for _, block := range o.Blocks {
		switch block := block.(type) {
		case mcp.Image:
			out.Content = append(out.Content, pictureOf(block))
		case string:
			out.Content = append(out.Content, textBlock(block))
		}
	}
	return out
}

func pictureOf(image mcp.Image) sdk.Content {
	if len(image.Data) > maxResultImage {
		return textBlock(fmt.Sprintf("[%s image, %d bytes: over the limit of %d]", image.MIMEType, len(image.Data), maxResultImage))
	}
	return &sdk.ImageContent{MIMEType: image.MIMEType, Data: image.Data}
}

func textBlock(s string) *sdk.TextContent {
	return &sdk.TextContent{Text: text.Shorten(s, maxResultText)}
}

func failed(why string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{textBlock(why)}, IsError: true}
}

// failedEnvelope returns what a tool says of its own failure,
// {"success":false,"error":…}, with the error as {code,message} whether it was that
// or a text. It returns nil for any other value.
func failedEnvelope(value any) map[string]any {
	switch value.(type) {
	case nil, string, bool, int, int64, float64, []any, mcp.Image:
		return nil
	}
	envelope, ok := value.(map[string]any)
	if ok {
		envelope = maps.Clone(envelope)
	} else {
		data, err := json.Marshal(value)
		if err != nil || json.Unmarshal(data, &envelope) != nil {
			return nil
		}
	}
	if success, is := envelope["success"].(bool); !is || success {
		return nil
	}
	if message, is := envelope["error"].(string); is {
		envelope["error"] = map[string]any{"code": CodeFailed, "message": message}
	}
	return envelope
}
