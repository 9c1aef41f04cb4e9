package agent

import (
	"fmt"

	"xiaozhi/mcp"
)

// effect is what an outcome means for the turn that asked for it.
type effect struct {
	result  string                  // the call's one result in the history
	say     string                  // to be spoken as it is
	again   bool                    // the model is asked once more
	handler *mcp.ActionResponseCall // of the conversation, to be run
	failed  bool                    // worth a warning
	reason  string                  // why it failed, for the ear
	asks    bool                    // the user is asked to allow the call, when all else is said
}

// dispatch is the only switch over mcp.Action: it says what each outcome of a
// tool means (seed 004 section 5.2.2, style.md "ActionResponse"). language is
// that of the turn.
func dispatch(r mcp.ActionResponse, language string) effect {
	switch r.Action {
	case mcp.ActionTypeError, mcp.ActionTypeNotFound:
		return failed(mcp.ResultText(r), r.Response, language)
	case mcp.ActionTypeNone:
		return effect{result: mcp.ResultText(r)}
	case mcp.ActionTypeResponse:
		say := mcp.ResultText(mcp.ActionResponse{Result: r.Response, Response: r.Result})
		return effect{result: say, say: say}
	case mcp.ActionTypeReqLLM:
		return effect{result: mcp.ResultText(r), again: true}
	case mcp.ActionTypeCallHandler:
		call, ok := asCall(r.Result)
		if !ok {
			return failed(handledText(language, "调用工具失败", "the tool names no handler"), nil, language)
		}
		return effect{handler: &call}
	}
	return failed(fmt.Sprintf("unknown action %d", r.Action), nil, language)
}

// failed is a failure with the result text, which says so to the model, and the
// reason for the ear.
func failed(result string, reason any, language string) effect {
	if result == "" {
		result = handledText(language, "MCP工具调用失败", "the tool call failed")
	}
	e := effect{result: result, again: true, failed: true, reason: result}
	if text, ok := reason.(string); ok && text != "" {
		e.reason = text
	}
	return e
}

// asCall takes an ActionResponseCall as a value, a pointer or decoded JSON.
func asCall(v any) (mcp.ActionResponseCall, bool) {
	switch c := v.(type) {
	case mcp.ActionResponseCall:
		return c, c.FuncName != ""
	case *mcp.ActionResponseCall:
		if c != nil {
			return *c, c.FuncName != ""
		}
	case map[string]any:
		name, _ := c["funcName"].(string)
		return mcp.ActionResponseCall{FuncName: name, Args: c["args"]}, name != ""
	}
	return mcp.ActionResponseCall{}, false
}
