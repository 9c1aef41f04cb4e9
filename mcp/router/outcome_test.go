package router

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

func TestRunOutcomes(t *testing.T) {
	long := strings.Repeat("长", 10<<10)
	tests := map[string]struct {
		source string
		name   string
		result any
		err    error
		want   mcp.ActionResponse
	}{
		"text":               {"device", "get", "21", nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "21"}},
		"nil":                {"local", "get", nil, nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM}},
		"a number":           {"local", "get", 7, nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: 7}},
		"an ActionResponse":  {"local", "get", mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}, nil, mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}},
		"a pointer to one":   {"local", "get", &mcp.ActionResponse{Action: mcp.ActionTypeNone}, nil, mcp.ActionResponse{Action: mcp.ActionTypeNone}},
		"a nil pointer":      {"local", "get", (*mcp.ActionResponse)(nil), nil, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "tool call failed: get: the tool returned nothing", Response: "the tool returned nothing"}},
		"a tool's error":     {"device", "get", nil, &mcp.ToolError{Message: "Unknown theme"}, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "tool call failed: get: Unknown theme", Response: "Unknown theme"}},
		"no reason":          {"device", "get", nil, &mcp.ToolError{}, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "tool call failed: get: the tool failed and gave no reason", Response: "the tool failed and gave no reason"}},
		"the tool is gone":   {"device", "get", nil, fmt.Errorf("call get: %w", mcp.ErrNoTool), mcp.ActionResponse{Action: mcp.ActionTypeNotFound, Result: "tool call failed: get: no such tool", Response: "no such tool"}},
		"the device is gone": {"device", "get", nil, fmt.Errorf("call get: %w", mcp.ErrClosed), mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "tool call failed: get: tool source closed", Response: "tool source closed"}},
		"refused control":    {"device", "set_theme", "false", nil, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "tool call failed: set_theme: the device refused", Response: "the device refused"}},
		"false of a query":   {"device", "get_lamp", "false", nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "false"}},
		"false of a local":   {"local", "set_lamp", "false", nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "false"}},
		"a long text":        {"device", "get", long, nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: text.Shorten(long, 16<<10)}},
		"a long object":      {"local", "get", map[string]string{"a": long}, nil, mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: text.Shorten(`{"a":"`+long+`"}`, 16<<10)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := source(test.source, test.name)
			s.call = func(context.Context, string, map[string]any) (any, error) { return test.result, test.err }
			b := newRouter(t, Options{}, s)
			if got := b.Run(t.Context(), prepare(t, b, test.name, "")); got != test.want {
				t.Errorf("got %.200v, want %.200v", got, test.want)
			}
		})
	}
}

func TestCutBlocks(t *testing.T) {
	image := mcp.Image{MIMEType: "image/png", Data: make([]byte, 100)}
	s := source("device", "get")
	s.call = func(context.Context, string, map[string]any) (any, error) {
		return []any{strings.Repeat("a", maxResult-20), image, strings.Repeat("b", maxResult-20), "c"}, nil
	}
	b := newRouter(t, Options{}, s)
	got, ok := b.Run(t.Context(), prepare(t, b, "get", "")).Result.([]any)
	if !ok || len(got) != 3 || got[0] != strings.Repeat("a", maxResult-20) || !strings.Contains(got[2].(string), "cut") {
		t.Fatalf("got %.300v", got)
	}
	if kept, ok := got[1].(mcp.Image); !ok || len(kept.Data) != 100 {
		t.Errorf("the picture became %v", got[1])
	}
}
