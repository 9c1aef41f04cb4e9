package mcp

import (
	"errors"
	"reflect"
	"testing"
)

func TestActionResponseOutcome(t *testing.T) {
	odd := func() {}
	picture := Image{MIMEType: "image/png", Data: []byte{1}}
	failed := func(text, reason string, value any, blocks ...any) Outcome {
		return Outcome{Text: text, Again: true, Failed: true, Reason: reason, Value: value, Blocks: blocks}
	}
	broke := errors.New("broke")
	object := map[string]any{"a": 1}
	for name, c := range map[string]struct {
		in   ActionResponse
		want Outcome
	}{
		"error":                    {ActionResponse{Action: ActionTypeError, Result: "broke"}, failed("broke", "broke", "broke", "broke")},
		"error value":              {ActionResponse{Action: ActionTypeError, Result: broke}, failed("broke", "broke", broke, "broke")},
		"error without words":      {ActionResponse{Action: ActionTypeError}, failed("the tool call failed", "the tool call failed", nil, "")},
		"not found":                {ActionResponse{Action: ActionTypeNotFound, Result: "no x"}, failed("no x", "no x", "no x", "no x")},
		"error with a reason":      {ActionResponse{Action: ActionTypeError, Result: "x failed", Response: "no light"}, failed("x failed", "no light", "x failed", "x failed")},
		"none":                     {ActionResponse{Action: ActionTypeNone, Result: "done"}, Outcome{Text: "done"}},
		"response":                 {ActionResponse{Action: ActionTypeResponse, Response: "hi"}, Outcome{Text: "hi", Say: "hi", Value: "hi", Blocks: []any{"hi"}}},
		"response without one":     {ActionResponse{Action: ActionTypeResponse, Result: "hi"}, Outcome{Text: "hi", Say: "hi", Value: "hi", Blocks: []any{"hi"}}},
		"response, not text":       {ActionResponse{Action: ActionTypeResponse, Response: 42}, Outcome{Text: "42", Say: "42", Value: 42, Blocks: []any{"42"}}},
		"for the model":            {ActionResponse{Action: ActionTypeReqLLM, Result: object}, Outcome{Text: `{"a":1}`, Again: true, Value: object, Blocks: []any{`{"a":1}`}}},
		"nil for the model":        {ActionResponse{Action: ActionTypeReqLLM}, Outcome{Again: true, Blocks: []any{""}}},
		"picture":                  {ActionResponse{Action: ActionTypeReqLLM, Result: picture}, Outcome{Text: "[image/png image, 1 bytes]", Again: true, Value: picture, Blocks: []any{picture}}},
		"handler that is no value": {ActionResponse{Action: ActionTypeCallHandler, Result: odd}, Failure("the tool names no handler", "", "en")},
		"handler without a name":   {ActionResponse{Action: ActionTypeCallHandler, Result: ActionResponseCall{}}, Failure("the tool names no handler", "", "en")},
		"unknown action":           {ActionResponse{Action: 99}, Failure("unknown action 99", "", "en")},
	} {
		if got := c.in.Outcome("en"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := (ActionResponse{Action: ActionTypeError}).Outcome("zh"); got.Text != "MCP工具调用失败" || got.Reason != got.Text {
		t.Errorf("in Chinese: %+v", got)
	}
}

func TestActionResponseOutcomeHandler(t *testing.T) {
	for _, call := range []any{ActionResponseCall{FuncName: "x"}, &ActionResponseCall{FuncName: "x"}, map[string]any{"funcName": "x"}} {
		got := ActionResponse{Action: ActionTypeCallHandler, Result: call}.Outcome("en")
		if got.Handler == nil || got.Handler.FuncName != "x" || got.Failed {
			t.Errorf("%T: %+v", call, got)
		}
	}
}

func TestActionResponseOutcomeBlocks(t *testing.T) {
	picture := Image{MIMEType: "image/png", Data: []byte{1}}
	mixed := ActionResponse{Action: ActionTypeReqLLM, Result: []any{"a", picture, 5}}
	if got := mixed.Outcome("en").Blocks; !reflect.DeepEqual(got, []any{"a", picture, "5"}) {
		t.Errorf("a text, a picture and a number: %v", got)
	}
	plain := ActionResponse{Action: ActionTypeReqLLM, Result: []any{"a", 5}}
	if got := plain.Outcome("en").Blocks; !reflect.DeepEqual(got, []any{`["a",5]`}) {
		t.Errorf("a list without pictures: %v", got)
	}
}
