package agent

import (
	"errors"
	"testing"

	"xiaozhi/mcp"
)

func TestDispatch(t *testing.T) {
	odd := func() {}
	for _, c := range []struct {
		name string
		in   mcp.ActionResponse
		want effect
	}{
		{"error", mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "broke"}, effect{result: "broke", again: true, failed: true, reason: "broke"}},
		{"error value", mcp.ActionResponse{Action: mcp.ActionTypeError, Result: errors.New("broke")}, effect{result: "broke", again: true, failed: true, reason: "broke"}},
		{"error without a word", mcp.ActionResponse{Action: mcp.ActionTypeError}, effect{result: "the tool call failed", again: true, failed: true, reason: "the tool call failed"}},
		{"not found", mcp.ActionResponse{Action: mcp.ActionTypeNotFound, Result: "no x"}, effect{result: "no x", again: true, failed: true, reason: "no x"}},
		{"error with a reason for the ear", mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "x failed: no light", Response: "no light"}, effect{result: "x failed: no light", again: true, failed: true, reason: "no light"}},
		{"none", mcp.ActionResponse{Action: mcp.ActionTypeNone, Result: "done"}, effect{result: "done"}},
		{"response", mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}, effect{result: "hi", say: "hi"}},
		{"response that is no string", mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: 42}, effect{result: "42", say: "42"}},
		{"for the model", mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: map[string]any{"a": 1}}, effect{result: `{"a":1}`, again: true}},
		{"nil for the model", mcp.ActionResponse{Action: mcp.ActionTypeReqLLM}, effect{again: true}},
		{"no handler", mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: odd}, effect{result: "the tool names no handler", again: true, failed: true, reason: "the tool names no handler"}},
		{"empty handler", mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{}}, effect{result: "the tool names no handler", again: true, failed: true, reason: "the tool names no handler"}},
		{"unknown", mcp.ActionResponse{Action: 99}, effect{result: "unknown action 99", again: true, failed: true, reason: "unknown action 99"}},
	} {
		if got := dispatch(c.in, "en"); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for _, call := range []any{
		mcp.ActionResponseCall{FuncName: "x"}, &mcp.ActionResponseCall{FuncName: "x"}, map[string]any{"funcName": "x"},
	} {
		got := dispatch(mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: call}, "en")
		if got.handler == nil || got.handler.FuncName != "x" {
			t.Errorf("%T: %+v", call, got)
		}
	}
	if got := dispatch(mcp.ActionResponse{Action: mcp.ActionTypeError}, "zh"); got.result != "MCP工具调用失败" {
		t.Errorf("in Chinese: %+v", got)
	}
}
