package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
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
// call. Its methods may be called at the same time.
type Runner struct {
	slots  slots
	number atomic.Uint64 // of the last call
	zone   *time.Location
	log    *slog.Logger
}

// NewRunner makes a runner. zone is that of the times that tools tell.
func NewRunner(zone *time.Location, log *slog.Logger) *Runner {
	return &Runner{zone: zone, log: log}
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
	defer func() {
		r.log.Info("outward call", "token", who.Name(), "remote", who.Remote, "via", who.Via, "tool", e.name, "call_id", id,
			"outcome", outcomeWord(result, err), "took", time.Since(began))
	}()
	if who.ReadOnly() && !e.readOnly() {
		return nil, ErrReadOnly
	}
	limit := e.limit
	if limit <= 0 {
		limit = CallTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	release, ok := r.slots.take(who.Name(), cancel)
	if !ok {
		return nil, ErrBusy
	}
	defer release()
	if who.Gone != nil {
		defer who.Gone(cancel)() // the call of a caller that left ends
	}
	ctx = mcp.WithInfo(ctx, mcp.Info{Language: who.Language, Zone: r.zone, Pictures: true})
	if e.do == nil {
		return r.handle(ctx, e, req)
	}
	o := r.contain(ctx, e, Call{id, string(arguments), who.Language})
	if o.Invalid != "" {
		return nil, &ArgumentError{o.Invalid}
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) && o.Response.Action == mcp.ActionTypeError {
		o.Response.Result = who.Say("gateway/tool-late")
	}
	return contentOf(o.Response), nil
}

// RefuseUnknown logs the call of a tool that the caller's view does not show.
func (r *Runner) RefuseUnknown(who Caller, name string) {
	r.log.Info("outward call", "token", who.Name(), "remote", who.Remote, "via", who.Via, "tool", Clip(name), "outcome", "unknown")
}

// contain runs a tool. A panic fails this call only.
func (r *Runner) contain(ctx context.Context, e *Entry, c Call) (o Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("tool crashed", "tool", e.name, "call_id", c.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			o = Outcome{Response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: CallerFrom(ctx).Say("gateway/tool-crashed")}}
		}
	}()
	return e.do(ctx, c)
}

// handle runs a tool that speaks the protocol itself.
func (r *Runner) handle(ctx context.Context, e *Entry, req *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
	if req == nil {
		return failed(CallerFrom(ctx).Say("gateway/tool-in-session")), nil
	}
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("tool crashed", "tool", e.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = failed(CallerFrom(ctx).Say("gateway/tool-crashed")), nil
		}
	}()
	return e.handle(ctx, req)
}

// outcomeWord returns the word of an outcome in the log.
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
