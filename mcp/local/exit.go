package local

import (
	"context"

	"xiaozhi/mcp"
)

// exit asks the conversation to end itself. The arguments go on as they are.
func exit(_ context.Context, arguments map[string]any) mcp.ActionResponse {
	return handOver(mcp.HandlerExit, arguments)
}
