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
}

// dispatch is the only switch over mcp.Action: it says what each outcome of a
// tool means (seed 004 section 5.2.2, style.md "ActionResponse"). The language
// is the turn's: a failure without a word gets one of ours.
func dispatch(r mcp.ActionResponse, language string) effect {
	switch r.Action {
	case mcp.ActionTypeError, mcp.ActionTypeNotFound:
		text := mcp.ResultText(r)
		if text == "" {
			text = handledText(language, "MCP工具调用失败", "the tool call failed")
		}
		return effect{result: text, again: true, failed: true}
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
			return effect{result: handledText(language, "调用工具失败", "tool call failed"), again: true, failed: true}
		}
		return effect{handler: &call}
	}
	return effect{result: fmt.Sprintf("unknown action %d", r.Action), again: true, failed: true}
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
