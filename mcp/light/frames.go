package light

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// The methods of the light dialect, and codes of JSON-RPC.
const (
	methodRegister = "mcp/registerTools"
	methodExecute  = "mcp/tool/execute"
	methodMessage  = "mcp/ai/message"

	version2           = "2.0"
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
)

// The frames that we send, with their members in the order of docs/mcp.md, Dialects 1.
type (
	request struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
		ID      string `json:"id,omitempty"` // "" for a notification
	}
	executeParams struct {
		Tool  string         `json:"tool_name"`
		Input map[string]any `json:"tool_input"`
	}
	messageParams struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	response struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result,omitempty"`
		Error   *rpcError       `json:"error,omitempty"`
	}
	registerResult struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	rpcError struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
)

// The types of an AI message (docs/mcp.md, Dialects 1).
const (
	Chunk   = "chunk"   // a piece of the reply, to be appended
	Final   = "final"   // the whole reply, or what was heard of it
	Thought = "thought" // reasoning, which a client may leave out
)

// Message is the frame of an mcp/ai/message notification; kind is Chunk, Final or Thought.
func Message(kind, content string) (json.RawMessage, error) {
	return rawjson.Marshal(request{Version: version2, Method: methodMessage, Params: messageParams{kind, content}})
}

// Refusal is the frame that refuses a request with this id, as it came, because of its parameters.
func Refusal(id json.RawMessage, message string) (json.RawMessage, error) {
	return rawjson.Marshal(response{Version: version2, ID: id, Error: &rpcError{codeInvalidParams, message}})
}

// inbound is one frame of a light device. It shares memory with the bytes that it was read from.
type inbound struct {
	id     json.RawMessage // a string or a number, as it came; nil for none
	method string          // "" for an answer
	params json.RawMessage // of a request; nil for none
	answer answer          // of an answer
}

// maxID is how long an id of a device may be, in bytes: it is sent back.
const maxID = 256

// parse reads one frame. An error means that it cannot be understood and is to be dropped.
func parse(data []byte) (inbound, error) {
	var f inbound
	if err := rawjson.CheckSize(data); err != nil {
		return f, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return f, fmt.Errorf("frame is no JSON object: %w", err)
	}
	if id := fields["id"]; rawjson.Present(id) && len(id) <= maxID && strings.IndexByte(`"-0123456789`, id[0]) >= 0 {
		f.id = id
	}
	method, isRequest := fields["method"]
	if !isRequest || !rawjson.Present(method) {
		if f.id == nil {
			return f, errors.New("frame has neither a method nor an id")
		}
		f.answer = readAnswer(fields)
		return f, nil
	}
	if err := json.Unmarshal(method, &f.method); err != nil || f.method == "" {
		return f, errors.New("method is not a name")
	}
	if rawjson.Present(fields["params"]) {
		f.params = fields["params"]
	}
	return f, nil
}

// readAnswer reads the outcome of a call: its error if there is one, else its
// result, whatever that is.
func readAnswer(fields map[string]json.RawMessage) answer {
	result, ok := fields["result"]
	switch failed := fields["error"]; {
	case rawjson.Present(failed):
		return answer{err: readError(failed)}
	case !ok:
		return answer{err: &mcp.ToolError{Message: "the device's answer has neither a result nor an error"}}
	}
	return answer{result: anyResult(result)}
}

// anyResult is a JSON value for the model: text as text, everything else as the
// JSON that it is, null too, with numbers as the device wrote them.
func anyResult(raw json.RawMessage) any {
	if text, ok := rawjson.String(raw); ok {
		return text
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return rawjson.Text(raw) // cannot be: it was read before
	}
	return json.RawMessage(bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD")))
}

// readError reads an error in any shape: an object with code and message, or a bare text.
func readError(raw json.RawMessage) *mcp.ToolError {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return &mcp.ToolError{Message: rawjson.Text(raw)}
	}
	e := &mcp.ToolError{Message: rawjson.Text(fields["message"])}
	if code, err := strconv.ParseInt(strings.Trim(string(fields["code"]), `"`), 10, 64); err == nil {
		e.Code = code
	}
	if e.Message == "" && e.Code != 0 {
		e.Message = "the tool failed with code " + strconv.FormatInt(e.Code, 10)
	}
	return e
}
