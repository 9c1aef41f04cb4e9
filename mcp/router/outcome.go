package router

import (
	"errors"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// maxResult bounds the text of a result for the model, in bytes.
const maxResult = 16 << 10

// response makes an ActionResponse of the answer of a source.
func response(p Prepared, result any, err error) mcp.ActionResponse {
	if answer, ok := result.(*mcp.ActionResponse); ok && err == nil {
		if answer == nil {
			return failure(p, errNoResult)
		}
		result = *answer
	}
	if err != nil {
		return failure(p, err)
	}
	r, ok := result.(mcp.ActionResponse)
	if !ok {
		r = mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: result}
	}
	if text, ok := r.Result.(string); ok && p.Offer.Kind == mcp.Control && p.Offer.Tool.Source == "device" &&
		strings.TrimSpace(text) == "false" {
		return failure(p, errRefused) // docs/protocol.md 5.4
	}
	r.Result = cut(r.Result)
	if say, ok := r.Response.(string); ok {
		r.Response = text.Shorten(say, maxResult)
	}
	return r
}

// cut keeps a result as it is unless its text is too long for a model. Pictures
// and the names of handlers are no text.
func cut(result any) any {
	switch v := result.(type) {
	case nil, mcp.Image, mcp.ActionResponseCall, *mcp.ActionResponseCall, bool, int, int64, float64:
		return result
	case string:
		return text.Shorten(v, maxResult)
	case []any:
		if mcp.HasImage(v) {
			return cutBlocks(v)
		}
	}
	if whole := mcp.TextOf(result); len(whole) > maxResult {
		return text.Shorten(whole, maxResult)
	}
	return result
}

// cutBlocks shortens the texts among blocks so that they fit together.
func cutBlocks(blocks []any) []any {
	out := make([]any, 0, len(blocks))
	left := maxResult
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

// failure returns the outcome of a call that failed. Result is for the model,
// Response is the bare reason, for the ear.
func failure(p Prepared, err error) mcp.ActionResponse {
	r := mcp.ActionResponse{Action: mcp.ActionTypeError}
	if errors.Is(err, mcp.ErrNoTool) {
		r.Action = mcp.ActionTypeNotFound
	}
	why := reason(err, p.Info.Language)
	r.Result, r.Response = message.In(text.Lang(p.Info.Language), "router/failed", p.Offer.Tool.Name, why), why
	return r
}

// reason returns err without the layers that only repeat the tool's name, in the
// language of the turn where the words are ours.
func reason(err error, language string) string {
	if reported, ok := errors.AsType[*mcp.ToolError](err); ok {
		return text.Shorten(reported.Error(), 1<<10)
	}
	for id, known := range map[string]error{"router/closed": mcp.ErrClosed, "router/no-tool": mcp.ErrNoTool} {
		if errors.Is(err, known) {
			return message.In(text.Lang(language), id)
		}
	}
	if own, ok := errors.AsType[*callError](err); ok {
		return message.In(text.Lang(language), own.id)
	}
	return text.Shorten(err.Error(), 1<<10)
}

// Broken reports whether a call has failed because its connection, or the conversation, has ended: nobody knows whether it was
// done.
func Broken(p Prepared, r mcp.ActionResponse) bool {
	return r.Action == mcp.ActionTypeError && (r.Response == reason(errClosing, p.Info.Language) || r.Response == reason(mcp.ErrClosed, p.Info.Language))
}

// callError is a reason of our own why a call failed.
type callError struct {
	text string
	id   string // of the words for people
}

func (e *callError) Error() string { return e.text }

var (
	errNoResult = &callError{"the tool returned nothing", "router/no-result"}
	errRefused  = &callError{"the device refused", "router/refused"}
	errNoReply  = &callError{"no answer in time", "router/no-reply"}
	errGivenUp  = &callError{"the call was given up", "router/given-up"}
	errClosing  = &callError{"the server is ending the connection", "router/closing"}
	errFull     = &callError{"too many calls are waiting for the device", "router/full"}
	errRunning  = &callError{"the same call with the same arguments is still running", "router/running"}
	// errNoConsent holds back what the gate has not let through, whoever wants to run it.
	errNoConsent = &callError{"the user has not consented", "router/no-consent"}
	errOthers    = &callError{"only certain people may allow it, by voice", "router/others"}

	errPanic = &callError{"the tool crashed", "router/crashed"}

	errUnprepared = errors.New("the call was not prepared")
)
