package local

import (
	"context"

	"xiaozhi/mcp"
)

// say picks the text in the language of the turn; Chinese where there is none.
func say(ctx context.Context, zh, en string) string {
	if mcp.InfoFrom(ctx).Language == "en" {
		return en
	}
	return zh
}

// tell gives the model something to answer with.
func tell(text string) mcp.ActionResponse {
	return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: text}
}

// speak answers the user at once, without the model.
func speak(text string) mcp.ActionResponse {
	return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Result: text, Response: text}
}

// fail tells the model what went wrong, so that it can repair it or say so.
func fail(text string) mcp.ActionResponse {
	return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: text}
}

// handOver leaves it to the conversation.
func handOver(handler string, args any) mcp.ActionResponse {
	return mcp.ActionResponse{
		Action: mcp.ActionTypeCallHandler,
		Result: mcp.ActionResponseCall{FuncName: handler, Args: args},
	}
}

// textArg is a text among the arguments, "" where there is none.
func textArg(arguments map[string]any, name string) string {
	text, _ := arguments[name].(string)
	return text
}

// intArg is a whole number among the arguments.
func intArg(arguments map[string]any, name string) (int, bool) {
	switch n := arguments[name].(type) {
	case int64:
		return int(n), true
	case int:
		return n, true
	case float64:
		if n == float64(int(n)) {
			return int(n), true
		}
	}
	return 0, false
}
