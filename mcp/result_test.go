package mcp

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
)

type panicky struct{}

func (panicky) MarshalJSON() ([]byte, error) { panic("no") }

func TestResultText(t *testing.T) {
	tests := map[string]struct {
		response ActionResponse
		want     string
	}{
		"nothing":           {ActionResponse{}, ""},
		"text":              {ActionResponse{Result: "a"}, "a"},
		"only a response":   {ActionResponse{Response: "b"}, "b"},
		"an object":         {ActionResponse{Result: map[string]any{"a": 1}}, `{"a":1}`},
		"a number":          {ActionResponse{Result: 1.5}, "1.5"},
		"a boolean":         {ActionResponse{Result: false}, "false"},
		"an error":          {ActionResponse{Result: errors.New("e")}, "e"},
		"raw JSON":          {ActionResponse{Result: json.RawMessage(`[1]`)}, "[1]"},
		"a call":            {ActionResponse{Result: ActionResponseCall{FuncName: "f"}}, `{"funcName":"f","args":null}`},
		"an image":          {ActionResponse{Result: Image{MIMEType: "image/png", Data: []byte{1, 2}}}, "[image/png image, 2 bytes]"},
		"text and an image": {ActionResponse{Result: []any{"a", Image{MIMEType: "image/png", Data: nil}}}, "a\n[image/png image, 0 bytes]"},
		"a list":            {ActionResponse{Result: []any{"a", 1}}, `["a",1]`},
		"a channel":         {ActionResponse{Result: make(chan int)}, "[chan int]"},
		"no number":         {ActionResponse{Result: math.NaN()}, "[float64]"},
		"a payload's panic": {ActionResponse{Result: panicky{}}, "[mcp.panicky]"},
		"a nil pointer":     {ActionResponse{Result: (*ToolError)(nil)}, "[*mcp.ToolError]"},
	}
	for name, test := range tests {
		if got := ResultText(test.response); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
