package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// Devices do not always send proper JSON-RPC (docs/mcp.md, Dialects 9). The functions here
// take a device's bytes and give back a message that the SDK can decode, with a note of each
// thing that was put right. They never panic.

// The SDK takes these three codes for its own broken connection.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
	codeServerError   = -32000
)

const pinnedVersion = "2024-11-05"

// knownVersions are those with which a device's session can go on.
var knownVersions = [...]string{pinnedVersion, "2025-03-26", "2025-06-18", "2025-11-25"}

// inbound is one message from a device after its repair.
type inbound struct {
	id      int64           // of a response
	replyTo json.RawMessage // of a request: its id as it came; nil for a notification
	method  string          // "" for a response
	result  json.RawMessage // of a response without an error; "null" when absent
	err     *jsonrpc.Error
	fixes   []string // what was repaired, for the log
}

// parseMessage reads one payload whose size was looked at. An error means that it
// cannot be understood and is to be dropped.
func parseMessage(payload []byte) (inbound, error) {
	var m inbound
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		return m, fmt.Errorf("payload is no JSON object: %w", err)
	}
	if fields == nil {
		return m, errors.New("payload is null")
	}
	if string(fields["jsonrpc"]) != `"2.0"` {
		m.fixes = append(m.fixes, "jsonrpc")
	}
	if rawjson.Present(fields["method"]) {
		if err := json.Unmarshal(fields["method"], &m.method); err != nil || m.method == "" {
			return m, errors.New("method is not a name")
		}
		if rawjson.Present(fields["id"]) {
			m.replyTo = fields["id"]
		}
		return m, nil
	}
	id, exact, err := parseID(fields["id"])
	if err != nil {
		return m, err
	}
	if m.id = id; !exact {
		m.fixes = append(m.fixes, "id")
	}
	if m.result = fields["result"]; !rawjson.Present(m.result) {
		m.result = json.RawMessage("null")
	}
	m.err = m.repairError(fields["error"])
	return m, nil
}

// parseID reads the id of a response: an integer, or text or a float that holds
// one (exact is false then).
func parseID(raw json.RawMessage) (id int64, exact bool, err error) {
	if !rawjson.Present(raw) {
		return 0, false, errors.New("response without id")
	}
	if id, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return id, true, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, false, fmt.Errorf("response id: %w", err)
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxID {
		return 0, false, fmt.Errorf("response id %.40q is not one of ours", text)
	}
	return int64(f), false, nil
}

// repairError reads the error member in any of its shapes; nil when there is none.
func (m *inbound) repairError(raw json.RawMessage) *jsonrpc.Error {
	if !rawjson.Present(raw) {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		m.fixes = append(m.fixes, "error")
		return &jsonrpc.Error{Message: rawjson.Text(raw)}
	}
	e := &jsonrpc.Error{Message: rawjson.Text(fields["message"]), Data: fields["data"]}
	if code, err := strconv.ParseInt(strings.Trim(string(fields["code"]), `"`), 10, 32); err == nil {
		e.Code = code
	}
	switch e.Code {
	case codeClientClosing, codeServerClosing, codeRejected:
		m.fixes = append(m.fixes, "error code")
		e.Data, _ = json.Marshal(struct { // what it really said
			Code int64           `json:"code"`
			Data json.RawMessage `json:"data,omitempty"`
		}{e.Code, e.Data})
		e.Code = codeServerError
	}
	return e
}

// initializeResult is the part of a device's answer to initialize that the SDK sees.
type initializeResult struct {
	ProtocolVersion string              `json:"protocolVersion"`
	Capabilities    map[string]struct{} `json:"capabilities"`
	ServerInfo      sdk.Implementation  `json:"serverInfo"`
}

// repairInitialize makes an initialize result that the SDK accepts. said is the
// version that the device named, "" if it named none.
func repairInitialize(raw json.RawMessage) (result json.RawMessage, said string, fixes []string) {
	var fields, caps, info map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		fixes = append(fixes, "result")
	}
	out := initializeResult{ProtocolVersion: pinnedVersion, Capabilities: map[string]struct{}{}}
	if rawjson.Present(fields["protocolVersion"]) {
		said = rawjson.Text(fields["protocolVersion"])
	}
	if slices.Contains(knownVersions[:], said) {
		out.ProtocolVersion = said
	} else {
		fixes = append(fixes, "protocolVersion")
	}
	if json.Unmarshal(fields["capabilities"], &caps) != nil {
		fixes = append(fixes, "capabilities")
	}
	for name, value := range caps {
		if text := string(value); text == "null" || text == "false" {
			continue
		}
		if value[0] != '{' {
			fixes = append(fixes, "capabilities."+name)
		}
		out.Capabilities[name] = struct{}{}
	}
	delete(out.Capabilities, "experimental") // the SDK would try to read them as something else
	delete(out.Capabilities, "extensions")
	if json.Unmarshal(fields["serverInfo"], &info) != nil || info == nil {
		fixes = append(fixes, "serverInfo")
	}
	out.ServerInfo = sdk.Implementation{Name: rawjson.Text(info["name"]), Version: rawjson.Text(info["version"])}
	result, _ = json.Marshal(out)
	return result, said, fixes
}

// RepairResponse reads a peer's answer to a request of ours, whose size and depth the caller
// has checked, and puts right what the SDK could not take: the id, an error, the shape of a
// result. method names the request with an id, "" when there is none. It returns nil for an
// answer to no request, and an error for what cannot be understood.
func RepairResponse(payload []byte, method func(id int64) string) (r *jsonrpc.Response, fixes []string, err error) {
	m, err := parseMessage(payload)
	if err != nil {
		return nil, nil, err
	}
	if m.method != "" {
		return nil, nil, fmt.Errorf("request %.40q is malformed", m.method)
	}
	name := method(m.id)
	if name == "" {
		return nil, nil, nil
	}
	r = &jsonrpc.Response{}
	if r.ID, err = jsonrpc.MakeID(float64(m.id)); err != nil {
		return nil, nil, err
	}
	if m.err == nil {
		r.Result, fixes = repairResult(name, m.result)
	} else {
		r.Error = m.err
	}
	return r, append(m.fixes, fixes...), nil
}

// repairResult leaves alone what the SDK can decode.
func repairResult(method string, raw json.RawMessage) (result json.RawMessage, fixes []string) {
	switch method {
	case methodInitialize:
		var r sdk.InitializeResult
		if json.Unmarshal(raw, &r) != nil || r.ProtocolVersion != newestVersion && !slices.Contains(knownVersions[:], r.ProtocolVersion) {
			result, _, fixes = repairInitialize(raw)
			return result, fixes
		}
	case methodListTools:
		if json.Unmarshal(raw, &sdk.ListToolsResult{}) != nil {
			return repairListResult(raw)
		}
	case methodCallTool:
		if json.Unmarshal(raw, &sdk.CallToolResult{}) != nil {
			return repairCall(raw)
		}
	}
	return raw, nil
}

// newestVersion is one that only other servers speak, and the SDK too.
const newestVersion = "2026-07-28"

// listResult is a page in the shape that the SDK always decodes.
type listResult struct {
	Tools []listedTool `json:"tools"`
	Next  string       `json:"nextCursor,omitempty"`
}

type listedTool struct {
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	InputSchema json.RawMessage  `json:"inputSchema"`
	Annotations *mcp.Annotations `json:"annotations,omitempty"`
}

// repairListResult keeps the tools of a page that can be used.
func repairListResult(raw json.RawMessage) (json.RawMessage, []string) {
	p, fixes, err := repairList(raw)
	if err != nil {
		return raw, append(fixes, err.Error()) // the SDK says what is wrong with it
	}
	out := listResult{Tools: []listedTool{}, Next: p.next}
	for _, t := range p.tools {
		out.Tools = append(out.Tools, listedTool{t.Name, t.Description, t.Schema, &t.Annotations})
	}
	result, err := json.Marshal(out)
	if err != nil {
		return raw, append(fixes, "tools")
	}
	return result, fixes
}
