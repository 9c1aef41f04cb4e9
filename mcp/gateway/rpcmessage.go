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

// checkMessage returns what is wrong with a message as JSON-RPC.
func checkMessage(m rpcMessage, c catalog.Caller) *rpcProblem {
	switch {
	case m.Version != "2.0":
		return &rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/no-version")}
	case m.Method == nil && m.Result == nil && m.Error == nil || m.Method != nil && *m.Method == "":
		return &rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/no-method")}
	case len(m.ID) > 0 && !validID(m.ID):
		return &rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/id-kind")}
	}
	return nil
}

// checkID refuses ids that would come back as others: the SDK keeps numbers as
// whole ones, and reads them as floating ones.
func checkID(id json.RawMessage, c catalog.Caller) *rpcProblem {
	if len(id) == 0 || id[0] == '"' {
		return nil
	}
	if f, err := strconv.ParseFloat(string(id), 64); !validID(id) || err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return &rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/id-size")}
	}
	return nil
}

// checkReading refuses a message that the SDK reads otherwise than we do: it has a
// key twice, or once in capitals, and would be checked as one request and served
// as another.
func checkReading(m rpcMessage, read jsonrpc.Message, c catalog.Caller) *rpcProblem {
	r, ok := read.(*jsonrpc.Request)
	if ok == (m.Method != nil) && (!ok || *m.Method == r.Method && (len(m.ID) > 0) == r.IsCall()) {
		return nil
	}
	return &rpcProblem{jsonrpc.CodeInvalidRequest, c.Say("gateway/two-readings")}
}

// checkMethod returns what is wrong with the method of a message or its params.
func checkMethod(m rpcMessage, c catalog.Caller) *rpcProblem {
	if len(m.ID) == 0 {
		return nil
	}
	known, params := methodOf(*m.Method)
	switch {
	case !known:
		return &rpcProblem{jsonrpc.CodeMethodNotFound, c.Say("gateway/method-unknown", catalog.Clip(*m.Method))}
	case len(m.Params) > 0 && m.Params[0] != '{' && string(m.Params) != "null",
		params && (len(m.Params) == 0 || string(m.Params) == "null"):
		return &rpcProblem{jsonrpc.CodeInvalidParams, c.Say("gateway/params-kind")}
	}
	return nil
}

// rpcFailure returns an error as the answer to m.
func rpcFailure(m rpcMessage, code int, message string) json.RawMessage {
	data, err := json.Marshal(rpcError{"2.0", idOf(m), rpcProblem{code, message}})
	if err != nil {
		return json.RawMessage(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return data
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

// rpcError is a JSON-RPC error on the wire.
type rpcError struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   rpcProblem      `json:"error"`
}

// rpcProblem is the error member of a JSON-RPC error.
type rpcProblem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// rpcAnswer is a result on the wire.
type rpcAnswer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
}

// rpcErrorData is an error with data on the wire.
type rpcErrorData struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc.Error  `json:"error"`
}

// encodeAnswer returns an answer of the server as the answer to m.
func encodeAnswer(m rpcMessage, r *jsonrpc.Response) json.RawMessage {
	var data []byte
	var err error
	if r.Error == nil {
		data, err = json.Marshal(rpcAnswer{"2.0", m.ID, r.Result})
	} else {
		e := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: catalog.OneLine(r.Error)}
		if wire, ok := errors.AsType[*jsonrpc.Error](r.Error); ok {
			e.Code, e.Data = wire.Code, wire.Data
		}
		data, err = json.Marshal(rpcErrorData{"2.0", m.ID, e})
	}
	if err != nil {
		return rpcFailure(m, jsonrpc.CodeInternalError, catalog.OneLine(err))
	}
	return data
}
