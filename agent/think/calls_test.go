package think

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// A call whose turn ended before its handler could run has a result that says so.
func TestToolCallWithoutHandler(t *testing.T) {
	c := &toolCall{call: providers.ToolCall{ID: "a"}, done: make(chan struct{})}
	c.outcome = mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{FuncName: mcp.HandlerTimer}}.Outcome("en")
	close(c.done)
	if got := c.result(); got != resultCancelled {
		t.Errorf("result %q", got)
	}
}
