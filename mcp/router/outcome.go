package router

import (
	"errors"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// response makes an ActionResponse of the answer of a source.
func (rt *Router) response(p Prepared, language string, result any, err error) mcp.ActionResponse {
	if err != nil {
		return failure(p, language, err)
	}
	var r mcp.ActionResponse
	switch v := result.(type) {
	case mcp.ActionResponse:
		r = v
	case *mcp.ActionResponse:
		if v == nil {
			return failure(p, language, errNoResult)
		}
		r = *v
	default:
		r = mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: result}
	}
	if text, ok := r.Result.(string); ok && p.Offer.Kind == mcp.Control && p.Offer.Tool.Source == "device" &&
		strings.TrimSpace(text) == "false" {
		return failure(p, language, errRefused) // docs/protocol.md 5.4
	}
	r.Result = rt.cut(r.Result)
	if say, ok := r.Response.(string); ok {
		r.Response = text.Shorten(say, rt.options.MaxResult)
	}
	return r
}

// cut keeps a result as it is unless its text is too long for a model. Pictures
// and the names of handlers are no text.
func (rt *Router) cut(result any) any {
	switch v := result.(type) {
	case nil, mcp.Image, mcp.ActionResponseCall, *mcp.ActionResponseCall, bool, int, int64, float64:
		return result
	case string:
		return text.Shorten(v, rt.options.MaxResult)
	case []any:
		if mcp.HasImage(v) {
			return rt.cutBlocks(v)
		}
	}
	if whole := mcp.TextOf(result); len(whole) > rt.options.MaxResult {
		return text.Shorten(whole, rt.options.MaxResult)
	}
	return result
}

// cutBlocks shortens the texts among blocks so that they fit together.
func (rt *Router) cutBlocks(blocks []any) []any {
	out := make([]any, 0, len(blocks))
	left := rt.options.MaxResult
	for _, block := range blocks {
		if _, ok := block.(mcp.Image); !ok {
			said := mcp.TextOf(block)
			if left <= 0 {
				continue
			}
			block = text.Shorten(said, left)
			left -= len(said)
		}
		out = append(out, block)
	}
	return out
}

var (
	errNoResult = errors.New("the tool returned nothing")
)

// failure returns the outcome of a call that failed. Result is for the model,
// Response is the bare reason, for the ear.
func failure(p Prepared, language string, err error) mcp.ActionResponse {
	r := mcp.ActionResponse{Action: mcp.ActionTypeError}
	if errors.Is(err, mcp.ErrNoTool) {
		r.Action = mcp.ActionTypeNotFound
	}
	why := reason(err, language)
	r.Result, r.Response = message.In(text.Lang(language), "router/failed", p.Offer.Tool.Name, why), why
	return r
}

// reason returns err without the layers that only repeat the tool's name, in the
// language of the turn where the words are ours.
func reason(err error, language string) string {
	if reported, ok := errors.AsType[*mcp.ToolError](err); ok {
		return text.Shorten(reported.Error(), 1<<10)
	}
	for _, known := range []struct {
		err error
		id  string
	}{
		{errNoReply, "router/no-reply"},
		{errGivenUp, "router/given-up"},
		{errClosing, "router/closing"},
		{mcp.ErrClosed, "router/closed"},
		{mcp.ErrNoTool, "router/no-tool"},
		{errNoResult, "router/no-result"},
		{errRefused, "router/refused"},
		{errFull, "router/full"},
		{errRunning, "router/running"},
		{errPanic, "router/crashed"},
	} {
		if errors.Is(err, known.err) {
			return message.In(text.Lang(language), known.id)
		}
	}
	return text.Shorten(err.Error(), 1<<10)
}

var (
	errRefused = errors.New("the device refused")
	errNoReply = errors.New("no answer in time")
	errGivenUp = errors.New("the call was given up")
	errClosing = errors.New("the server is ending the connection")
	errFull    = errors.New("too many calls are waiting for the device")
	errRunning = errors.New("the same call with the same arguments is still running")
	errPanic   = errors.New("the tool crashed")

	errUnprepared = errors.New("the call was not prepared")
)
