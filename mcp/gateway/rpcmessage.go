package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// rpcMessage is a JSON-RPC message as the dispatcher reads it.
type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// methodOf reports whether clients may send a request, and whether it needs params.
func methodOf(name string) (known, params bool) {
	switch name {
	case "initialize", "tools/call", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"prompts/get", "completion/complete", "logging/setLevel":
		return true, true
	case "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover":
		return true, false
	}
	return false, false
}

// readMessage reads one message, or says what is wrong with it as JSON-RPC.
func readMessage(data []byte, c catalog.Caller) (m rpcMessage, problem *jsonrpc.Error) {
	if err := json.Unmarshal(data, &m); err != nil {
		if json.Valid(data) {
			return m, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/no-request"))
		}
		return rpcMessage{}, problemOf(jsonrpc.CodeParseError, c.Say("gateway/no-json"))
	}
	switch {
	case m.Version != "2.0":
		return m, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/no-version"))
	case m.Method == nil && m.Result == nil && m.Error == nil || m.Method != nil && *m.Method == "":
		return m, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/no-method"))
	case len(m.ID) > 0 && !validID(m.ID):
		return m, problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/id-kind"))
	}
	return m, nil
}

// checkID refuses ids that would come back as others: the SDK keeps numbers as
// whole ones, and reads them as floating ones.
func checkID(id json.RawMessage, c catalog.Caller) *jsonrpc.Error {
	if len(id) == 0 || id[0] == '"' {
		return nil
	}
	if f, err := strconv.ParseFloat(string(id), 64); !validID(id) || err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/id-size"))
	}
	return nil
}

// checkReading refuses a message that the SDK reads otherwise than we do: it has a
// key twice, or once in capitals, and would be checked as one request and served
// as another.
func checkReading(m rpcMessage, read jsonrpc.Message, c catalog.Caller) *jsonrpc.Error {
	r, ok := read.(*jsonrpc.Request)
	if ok == (m.Method != nil) && (!ok || *m.Method == r.Method && (len(m.ID) > 0) == r.IsCall()) {
		return nil
	}
	return problemOf(jsonrpc.CodeInvalidRequest, c.Say("gateway/two-readings"))
}

// checkMethod returns what is wrong with the method of a message or its params.
func checkMethod(m rpcMessage, c catalog.Caller) *jsonrpc.Error {
	if len(m.ID) == 0 {
		return nil
	}
	known, params := methodOf(*m.Method)
	switch {
	case !known:
		return problemOf(jsonrpc.CodeMethodNotFound, c.Say("gateway/method-unknown", catalog.Clip(*m.Method)))
	case len(m.Params) > 0 && m.Params[0] != '{' && string(m.Params) != "null",
		params && (len(m.Params) == 0 || string(m.Params) == "null"):
		return problemOf(jsonrpc.CodeInvalidParams, c.Say("gateway/params-kind"))
	}
	return nil
}

// idOf returns the id to answer with: null where there is none.
func idOf(m rpcMessage) json.RawMessage {
	if validID(m.ID) {
		return m.ID
	}
	return json.RawMessage("null")
}

// validID reports whether an id is a text or a number.
func validID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// metaVersion returns the revision that a request carries in its _meta: only those
// of the newest do.
func metaVersion(params json.RawMessage) string {
	if !bytes.Contains(params, []byte(sdk.MetaKeyProtocolVersion)) {
		return ""
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	version, _ := p.Meta[sdk.MetaKeyProtocolVersion].(string)
	return version
}

type rpcAnswer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// rpcResult returns an answer of the server as the answer to m.
func rpcResult(m rpcMessage, r *jsonrpc.Response) json.RawMessage {
	answer := rpcAnswer{JSONRPC: "2.0", ID: m.ID, Result: r.Result}
	if r.Error != nil {
		answer.Error = problemOf(jsonrpc.CodeInternalError, catalog.OneLine(r.Error))
		if wire, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
			answer.Error.Code, answer.Error.Data = wire.Code, wire.Data
		}
	}
	return encode(answer)
}

// rpcFailure returns what is wrong as the answer to m.
func rpcFailure(m rpcMessage, problem *jsonrpc.Error) json.RawMessage {
	return encode(rpcAnswer{JSONRPC: "2.0", ID: idOf(m), Error: problem})
}

func problemOf(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

func encode(answer rpcAnswer) json.RawMessage {
	data, err := json.Marshal(answer)
	if err != nil {
		return json.RawMessage(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return data
}
