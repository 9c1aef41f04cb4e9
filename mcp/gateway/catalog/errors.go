package catalog

import (
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// CodeRefused is the JSON-RPC code of requests that are refused for reasons of our own.
const CodeRefused = -32000

// unknownTool returns the error for a name that the view does not know. Its code
// depends on the revision (docs/mcp.md 7).
func unknownTool(c Caller, version, name string) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/tool-unknown", Clip(name))}
	if version == Version2024 {
		e.Code = jsonrpc.CodeMethodNotFound
		return noToolError{e}
	}
	return e
}

// unknownPrompt returns the error for a prompt that the view does not show.
func unknownPrompt(c Caller, name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/prompt-unknown", Clip(name))}
}

// UnknownResource returns the error for a resource that the view does not show.
// Clients look for the URI in its data.
func UnknownResource(c Caller, uri string) error {
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: c.Say("gateway/resource-unknown", Clip(uri)), Data: data}
}

// noToolError is an error with the code of an unknown method that the SDK does not
// take for one of its own, which it would word itself.
type noToolError struct{ wire *jsonrpc.Error }

// Error returns the message.
func (e noToolError) Error() string { return e.wire.Message }

// As gives the code away. Nothing else finds the error of the wire in it.
func (e noToolError) As(target any) bool {
	wire, ok := target.(**jsonrpc.Error)
	if ok {
		*wire = e.wire
	}
	return ok
}

// wireError gives an error without a code one: the wire would carry 0.
func wireError(method string, err error) error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != 0 {
		return err
	}
	code := int64(jsonrpc.CodeInternalError)
	if method == "initialize" {
		code = jsonrpc.CodeInvalidRequest // a second time
	}
	return &jsonrpc.Error{Code: code, Message: OneLine(err)}
}
