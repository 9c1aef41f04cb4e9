package local

import (
	"context"

	"xiaozhi/mcp"
)

// exitHandler is the conversation's handler that says goodbye and hangs up
// (seed 004, 7.1).
const exitHandler = "mcp_handler_exit"

// exit asks the conversation to end itself. The arguments go on as they are.
func exit(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	return mcp.ActionResponse{
		Action: mcp.ActionTypeCallHandler,
		Result: mcp.ActionResponseCall{FuncName: exitHandler, Args: arguments},
	}
}
