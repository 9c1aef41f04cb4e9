package agent

import (
	"testing"

	"xiaozhi/mcp"
)

func TestDispatch(t *testing.T) {
	for name, c := range map[string]struct {
		in   mcp.ActionResponse
		want effect
	}{
		"failure":       {mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "x failed", Response: "no light"}, effect{result: "x failed", again: true, failed: true, reason: "no light"}},
		"none":          {mcp.ActionResponse{Action: mcp.ActionTypeNone, Result: "done"}, effect{result: "done"}},
		"response":      {mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}, effect{result: "hi", say: "hi"}},
		"for the model": {mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "5"}, effect{result: "5", again: true}},
	} {
		if got := dispatch(c.in, "en"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	call := mcp.ActionResponseCall{FuncName: "x"}
	if got := dispatch(mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: call}, "en"); got.handler == nil || got.handler.FuncName != "x" {
		t.Errorf("handler: %+v", got)
	}
}
