package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/schema"
)

// call is one call of a tool as an entry gets it.
type call struct {
	id        string // for the log
	arguments string // JSON text; "" means {}
	language  string // "zh" or "en"
}

// outcome is what became of a call.
type outcome struct {
	response mcp.ActionResponse
	invalid  string // the arguments cannot be used, and why; response is not set
}

// callTimeout is how long a call may take whose tool sets no limit.
const callTimeout = 60 * time.Second

// Errors of calls that were not run.
var (
	errReadOnly = errors.New("the token is read-only")
	errBusy     = errors.New("too many calls at the same time")
)

// checked is a run that reads its arguments with a checker first.
func checked(c *schema.Checker, f func(context.Context, map[string]any) (any, error)) func(context.Context, call) outcome {
	return func(ctx context.Context, k call) outcome {
		arguments, err := c.Read(k.arguments)
		if err != nil {
			return outcome{invalid: err.Error()}
		}
		return outcome{response: responseOf(f(ctx, arguments))}
	}
}

// responseOf is what a tool returned as an ActionResponse.
func responseOf(result any, err error) mcp.ActionResponse {
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: reason(err)}
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

// reason is an error in words for whoever called.
func reason(err error) string {
	if reported, ok := errors.AsType[*mcp.ToolError](err); ok {
		return reported.Error()
	}
	return err.Error()
}

// perform runs a tool for a caller, within all limits, and leaves the line of
// the audit. req is nil for a call that did not come by MCP. The error is one
// for which the tool was not run, or one of Tool.Handle that is the protocol's.
func (g *Gateway) perform(ctx context.Context, e *entry, arguments json.RawMessage, req *sdk.CallToolRequest) (result *sdk.CallToolResult, invalid string, err error) {
	who := callerFrom(ctx)
	began := time.Now()
	id := "out_" + fmt.Sprint(g.calls.Add(1))
	defer func() {
		g.log.Info("outward call", "token", who.name(), "remote", who.remote, "via", who.via, "tool", e.name, "call_id", id,
			"outcome", outcomeWord(result, invalid, err), "took", time.Since(began))
	}()
	if who.readOnly() && !e.readOnly() {
		return nil, "", errReadOnly
	}
	limit := e.limit
	if limit <= 0 {
		limit = callTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	release, ok := g.slots.take(who.name(), cancel)
	if !ok {
		return nil, "", errBusy
	}
	defer release()
	if who.gone != nil {
		defer who.gone(cancel)() // a caller who left takes his call along
	}
	ctx = mcp.WithInfo(ctx, mcp.Info{Language: who.language, Zone: g.options.Zone, Pictures: true})
	if e.run == nil {
		result, err = g.handle(ctx, e, req)
		return result, "", err
	}
	if req != nil {
		ctx = withClient(ctx, req)
	}
	o := g.contain(ctx, e, call{id, string(arguments), who.language})
	if o.invalid != "" {
		return nil, o.invalid, nil
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) && o.response.Action == mcp.ActionTypeError {
		o.response.Result = say(who.language, "没有按时回应", "no answer in time")
	}
	return contentOf(o.response), "", nil
}

// contain runs an entry; a panic is this call's trouble and nobody else's.
func (g *Gateway) contain(ctx context.Context, e *entry, c call) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("tool crashed", "tool", e.name, "call_id", c.id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			o = outcome{response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: say(c.language, "工具出错了", "the tool crashed")}}
		}
	}()
	return e.run(ctx, c)
}

// handle runs an entry that speaks the protocol itself.
func (g *Gateway) handle(ctx context.Context, e *entry, req *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
	if req == nil {
		return failed(say(callerFrom(ctx).language, "这个工具只能通过 MCP 会话使用", "this tool works in an MCP session only")), nil
	}
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("tool crashed", "tool", e.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = failed(say(callerFrom(ctx).language, "工具出错了", "the tool crashed")), nil
		}
	}()
	return e.handle(ctx, req)
}

// outcomeWord is the stable word of an outcome in the log.
func outcomeWord(result *sdk.CallToolResult, invalid string, err error) string {
	switch {
	case errors.Is(err, errReadOnly), errors.Is(err, errBusy):
		return "refused"
	case err != nil:
		return "error"
	case invalid != "":
		return "invalid"
	case result != nil && result.IsError:
		return "failed"
	}
	return "ok"
}
